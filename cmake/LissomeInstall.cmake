# Installed files; see below.
