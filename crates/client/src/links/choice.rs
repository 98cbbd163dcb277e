//! Which connection the next request takes.
//!
//! Owns: the order of preference. Never: connects, or counts tries.

/// Names a connection within one client.
pub(crate) type LinkId = u32;

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Health {
    /// A server has answered on it.
    Up,
    /// It is being made.
    Connecting,
    /// It broke, or couldn't be made; it is tried again in the background.
    Down,
}

/// A connection, as far as the choice goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: LinkId,
    pub(crate) health: Health,
    /// It leads to the node that leads, as far as is known.
    pub(crate) leads: bool,
}

/// The best of those that weren't tried yet: the leader's, then those that are up, in turn; a broken one only when
/// there is nothing else.
pub(crate) fn choose(candidates: &[Candidate], tried: &[LinkId], turn: usize) -> Option<LinkId> {
    let untried: Vec<&Candidate> =
        candidates.iter().filter(|candidate| !tried.contains(&candidate.id)).collect();
    let rank = |candidate: &Candidate| (candidate.health, !candidate.leads);
    let best = untried.iter().map(|candidate| rank(candidate)).min()?;
    let equals: Vec<LinkId> =
        untried.iter().filter(|candidate| rank(candidate) == best).map(|candidate| candidate.id).collect();
    equals.get(turn % equals.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(healths: &[Health]) -> Vec<Candidate> {
        (0..).zip(healths).map(|(id, health)| Candidate { id, health: *health, leads: false }).collect()
    }

    #[test]
    fn connections_that_are_up_are_taken_in_turn() {
        let links = links(&[Health::Up, Health::Down, Health::Up]);
        let taken: Vec<_> = (0..4).map(|turn| choose(&links, &[], turn)).collect();
        assert_eq!(taken, [Some(0), Some(2), Some(0), Some(2)]);
    }

    #[test]
    fn the_leaders_connection_comes_first_where_it_is_known() {
        let mut links = links(&[Health::Up, Health::Up, Health::Up]);
        links[1].leads = true;
        assert_eq!((0..4).map(|turn| choose(&links, &[], turn)).collect::<Vec<_>>(), [Some(1); 4]);
        assert_ne!(choose(&links, &[1], 0), Some(1), "but not a second time");
    }

    /// C79: a broken connection isn't tried before every request.
    #[test]
    fn a_broken_connection_is_left_out_while_another_is_up() {
        let mut links = links(&[Health::Down, Health::Connecting, Health::Up]);
        links[0].leads = true;
        assert_eq!((0..9).map(|turn| choose(&links, &[], turn)).collect::<Vec<_>>(), [Some(2); 9]);
        assert_eq!(choose(&links, &[2], 0), Some(1));
        assert_eq!(choose(&links, &[2, 1], 0), Some(0), "when there is nothing else it is tried");
        assert_eq!(choose(&links, &[2, 1, 0], 0), None);
        assert_eq!(choose(&[], &[], 3), None);
    }
}
