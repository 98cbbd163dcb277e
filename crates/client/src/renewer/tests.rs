//! Leases of one client in virtual time.
