//! Every number there is, under the headings of the page.

mod disk;
mod doors;
mod leadership;
mod locks;
mod log;
mod node;
mod requests;
mod time;

use super::row::Section;

/// All of them, in the order in which they are shown.
pub(super) const ALL: [Section; 8] = [
    node::SECTION,
    requests::SECTION,
    doors::SECTION,
    locks::SECTION,
    leadership::SECTION,
    log::SECTION,
    disk::SECTION,
    time::SECTION,
];
