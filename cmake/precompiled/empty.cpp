// Carries the precompiled header: a target needs one source file.
