//! The disks of a simulated world: files in memory that forget at a crash what was not synced.
