//! What happened: who, when, what; and its hash.
