//! Bugs planted on purpose, so that the checks can't go blind.
