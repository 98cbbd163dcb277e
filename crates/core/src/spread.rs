//! A map whose keys have no order that anybody asks for, so that a look at it need not compare its way through a large tree.
//!
//! Owns: where a key is. Never: what is kept under it.

use crate::invariants::broken;
use crate::request::RequestKey;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kunci_types::LeaseId;

/// Parts that a part is cut into.
const PARTS: usize = 16;
/// Bits of a key's spread that name its part of a part.
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Levels of parts. The bits of a key end there, and what is still together stays so.
const LEVELS_MAX: u32 = u64::BITS / PART_BITS;
/// Entries up to which a part stays a list.
const LIST_MAX: usize = 32;

/// A key whose bits are as good as random, and which is ordered by them.
pub(crate) trait Spread: Ord + Clone {
    /// The key's leading bits. Of two keys the smaller one never has the larger spread.
    fn spread(&self) -> u64;
}

impl Spread for RequestKey {
    fn spread(&self) -> u64 {
        self.hash()
    }
}

impl Spread for LeaseId {
    fn spread(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// A map of millions of keys: a trie by the leading bits of their spread, whose leaves are short sorted lists. A clone shares
/// everything that isn't changed later. What was cut stays cut: 24 bytes for each list that there ever was at a time.
#[derive(Clone, Debug)]
pub(crate) struct SpreadMap<K: Spread, V: Clone> {
    root: Part<K, V>,
    length: usize,
}

#[derive(Clone, Debug)]
enum Part<K, V> {
    /// In the order of the keys.
    List(Vec<(K, V)>),
    /// By the next bits of the keys.
    Cut(Arc<[Part<K, V>]>),
}

impl<K: Spread, V: Clone> Default for SpreadMap<K, V> {
    fn default() -> Self {
        Self { root: Part::List(Vec::new()), length: 0 }
    }
}

/// Equal by what is in them, wherever it is cut.
impl<K: Spread, V: Clone + PartialEq> PartialEq for SpreadMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length && self.iter().eq(other.iter())
    }
}

impl<K: Spread, V: Clone + Eq> Eq for SpreadMap<K, V> {}

impl<K: Spread, V: Clone> SpreadMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (spread, mut part, mut level) = (key.spread(), &self.root, 0);
        loop {
            match part {
                Part::List(list) => {
                    let at = place_in(list, key).ok()?;
                    return list.get(at).map(|(_, value)| value);
                }
                Part::Cut(parts) => part = parts.get(number_of(spread, level))?,
            }
            level += 1;
        }
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (list, _) = self.root.list_of(key.spread())?;
        let at = place_in(list, key).ok()?;
        list.get_mut(at).map(|(_, value)| value)
    }

    /// Keeps `value` under `key`, in place of what was there.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let spread = key.spread();
        let Some((list, level)) = self.root.list_of(spread) else { broken("a map has no place for a key") };
        match place_in(list, &key) {
            Ok(at) => {
                if let Some(entry) = list.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => {
                list.insert(at, (key, value));
                self.length += 1;
                if list.len() > LIST_MAX && level < LEVELS_MAX {
                    self.root.cut(spread);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (list, _) = self.root.list_of(key.spread())?;
        let at = place_in(list, key).ok()?;
        let (_, value) = list.remove(at);
        if list.is_empty() {
            *list = Vec::new();
        }
        self.length -= 1;
        Some(value)
    }

    /// In the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut lists = Vec::new();
        self.root.lists(&mut lists);
        lists.into_iter().flatten().map(|(key, value)| (key, value))
    }
}

impl<K: Spread, V: Clone> Part<K, V> {
    /// The list that a key belongs to, and its level; what is shared with a clone is copied on the way. There always is one.
    fn list_of(&mut self, spread: u64) -> Option<(&mut Vec<(K, V)>, u32)> {
        let (mut part, mut level) = (self, 0);
        loop {
            match part {
                Self::List(list) => return Some((list, level)),
                Self::Cut(parts) => part = Arc::make_mut(parts).get_mut(number_of(spread, level))?,
            }
            level += 1;
        }
    }

    /// Cuts the list that a key belongs to.
    fn cut(&mut self, spread: u64) {
        let (mut part, mut level) = (self, 0);
        while let Self::Cut(parts) = part {
            let Some(next) = Arc::make_mut(parts).get_mut(number_of(spread, level)) else { return };
            (part, level) = (next, level + 1);
        }
        let Self::List(list) = part else { return };
        let mut entries = core::mem::take(list).into_iter().peekable();
        // Entries in order are in order of their parts.
        let lists = (0..PARTS).map(|number| {
            Self::List(
                core::iter::from_fn(|| entries.next_if(|(key, _)| number_of(key.spread(), level) == number))
                    .collect(),
            )
        });
        *part = Self::Cut(lists.collect());
    }

    fn lists<'a>(&'a self, lists: &mut Vec<&'a Vec<(K, V)>>) {
        match self {
            Self::List(list) => lists.push(list),
            Self::Cut(parts) => parts.iter().for_each(|part| part.lists(lists)),
        }
    }
}

fn place_in<K: Ord, V>(list: &[(K, V)], key: &K) -> Result<usize, usize> {
    list.binary_search_by(|(other, _)| other.cmp(key))
}

/// Which part of a part on this level a key belongs to; less than `PARTS`.
fn number_of(spread: u64, level: u32) -> usize {
    (spread << (level * PART_BITS) >> (u64::BITS - PART_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn id(number: u64) -> LeaseId {
        // Multiplied by an odd number: spread over all parts, each number its own.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&spread);
        LeaseId::from_bytes(bytes)
    }

    fn is_the_same(map: &SpreadMap<LeaseId, u64>, other: &BTreeMap<LeaseId, u64>) {
        assert_eq!(map.len(), other.len());
        assert!(map.iter().eq(other.iter()), "other keys, or in another order");
    }

    /// How many levels of cut parts there are above the list of a key.
    fn level_of(map: &mut SpreadMap<LeaseId, u64>, key: LeaseId) -> u32 {
        map.root.list_of(key.spread()).unwrap().1
    }

    #[test]
    fn a_map_that_is_cut_often_keeps_everything_in_order() {
        let (mut map, mut other) = (SpreadMap::default(), BTreeMap::new());
        let many = 20_000;
        for number in 0..many {
            map.insert(id(number), number);
            other.insert(id(number), number);
        }
        assert_eq!(level_of(&mut map, id(0)), 3);
        is_the_same(&map, &other);

        let shared = map.clone();
        for number in (0..many).step_by(2) {
            assert_eq!(map.remove(&id(number)), other.remove(&id(number)));
            *map.get_mut(&id(number + 1)).unwrap() += 1;
            *other.get_mut(&id(number + 1)).unwrap() += 1;
        }
        is_the_same(&map, &other);
        assert_eq!(map.get(&id(0)), None);
        assert_eq!(shared.get(&id(0)), Some(&0), "a clone saw a later change");
        assert_eq!(shared.get(&id(1)), Some(&1), "a clone saw a later change");
    }

    #[test]
    fn maps_cut_otherwise_are_equal() {
        let (mut small, mut once_large) = (SpreadMap::default(), SpreadMap::default());
        let many = 2 * LIST_MAX as u64;
        (0..many).for_each(|number| once_large.insert(id(number), number));
        for number in 10..many {
            once_large.remove(&id(number));
        }
        (0..10).for_each(|number| small.insert(id(number), number));
        assert_eq!((level_of(&mut small, id(0)), level_of(&mut once_large, id(0))), (0, 1));
        assert_eq!(small, once_large);
    }

    #[test]
    fn keys_with_equal_bits_stay_together() {
        let alike = |number: u64| {
            let mut bytes = [7; 16];
            bytes[8..].copy_from_slice(&number.to_be_bytes());
            LeaseId::from_bytes(bytes)
        };
        let (mut map, mut other) = (SpreadMap::default(), BTreeMap::new());
        for number in 0..2 * LIST_MAX as u64 {
            map.insert(alike(number), number);
            other.insert(alike(number), number);
        }
        assert_eq!(level_of(&mut map, alike(0)), LEVELS_MAX);
        is_the_same(&map, &other);
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..100, 0_u8..3), 0..300)) {
            let (mut map, mut other) = (SpreadMap::default(), BTreeMap::new());
            for (at, (number, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => prop_assert_eq!(map.remove(&id(number)), other.remove(&id(number))),
                    _ => {
                        map.insert(id(number), at as u64);
                        other.insert(id(number), at as u64);
                    }
                }
                is_the_same(&map, &other);
            }
        }
    }
}
