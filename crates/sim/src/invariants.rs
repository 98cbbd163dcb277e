//! What must hold: one file for each property.
