# The project's Python: the one whose torch is built against and whose package is made.
# .venv where there is one, else python3; -DLISSOME_PYTHON=/path/to/python says another.

if(NOT LISSOME_PYTHON)
  if(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    set(LISSOME_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  else()
    find_program(LISSOME_PYTHON3 python3 NO_CACHE)
    set(LISSOME_PYTHON "${LISSOME_PYTHON3}")
  endif()
endif()
set(LISSOME_PYTHON "${LISSOME_PYTHON}" CACHE FILEPATH "The Python that has torch")
if(LISSOME_TORCH AND NOT EXISTS "${LISSOME_PYTHON}")
  message(FATAL_ERROR "No Python found. Run tools/setup, or give -DLISSOME_PYTHON=/path/to/python.")
endif()
