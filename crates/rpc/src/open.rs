//! The requests of the peer that are not answered yet.

use crate::Id;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Nearly every peer numbers its requests upward: those stand in a line, in order, and need no hash. Every other id is one
/// that the peer chose freely, and is hashed with a key that the peer does not know.
#[derive(Debug)]
pub(crate) struct Open<T> {
    /// An answered request leaves a gap until it comes to the front, or until there are too many gaps.
    line: VecDeque<(i64, Option<T>)>,
    /// How many in `line` are no gaps.
    standing: usize,
    others: HashMap<Id, T>,
}

/// More gaps than requests, and more than this, are not kept.
const GAPS: usize = 32;

impl<T> Default for Open<T> {
    fn default() -> Self {
        Open { line: VecDeque::new(), standing: 0, others: HashMap::new() }
    }
}

impl<T> Open<T> {
    pub(crate) fn len(&self) -> usize {
        self.standing + self.others.len()
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = &T> {
        self.line.iter().filter_map(|(_, token)| token.as_ref()).chain(self.others.values())
    }

    pub(crate) fn get(&self, id: &Id) -> Option<&T> {
        let standing = self.place(id).and_then(|place| self.line.get(place)?.1.as_ref());
        standing.or_else(|| self.others.get(id))
    }

    /// Adds a request; `None` if the id belongs to one that is open.
    pub(crate) fn insert(&mut self, id: &Id, token: impl FnOnce() -> T) -> Option<&T> {
        let Id::Int(number) = *id else { return self.insert_other(id, token) };
        if !self.others.is_empty() && self.others.contains_key(id) {
            return None;
        }
        if self.line.back().is_none_or(|(last, _)| *last < number) {
            self.line.push_back((number, None));
        }
        let Some(place) = self.place(id) else { return self.insert_other(id, token) };
        let (_, slot) = self.line.get_mut(place)?;
        if slot.is_some() {
            return None;
        }
        self.standing += 1;
        Some(slot.insert(token()))
    }

    fn insert_other(&mut self, id: &Id, token: impl FnOnce() -> T) -> Option<&T> {
        match self.others.entry(id.clone()) {
            Entry::Vacant(entry) => Some(entry.insert(token())),
            Entry::Occupied(_) => None,
        }
    }

    pub(crate) fn remove(&mut self, id: &Id) -> Option<T> {
        let standing = self.place(id).and_then(|place| self.line.get_mut(place)?.1.take());
        let Some(token) = standing else { return self.others.remove(id) };
        self.standing -= 1;
        while self.line.front().is_some_and(|(_, token)| token.is_none()) {
            self.line.pop_front();
        }
        if self.line.len() > 2 * self.standing + GAPS {
            self.line.retain(|(_, token)| token.is_some());
        }
        Some(token)
    }

    /// Where a number stands in the line. Mostly it is the first or the last.
    fn place(&self, id: &Id) -> Option<usize> {
        let Id::Int(number) = id else { return None };
        let last = self.line.len().checked_sub(1)?;
        if self.line.get(last)?.0 == *number {
            return Some(last);
        }
        if self.line.front()?.0 == *number {
            return Some(0);
        }
        self.line.binary_search_by_key(number, |(standing, _)| *standing).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn id() -> impl Strategy<Value = Id> {
        prop_oneof![
            4 => (0i64..40).prop_map(Id::Int),
            1 => (-3i64..3).prop_map(Id::Int),
            1 => "[ab]".prop_map(|text| Id::from(text.as_str())),
            1 => Just(Id::Null),
        ]
    }

    proptest! {
        /// shows RPC-08, RPC-24: an id is open once, whatever the order in which ids come and go
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), id()), 0..300)) {
            let mut open = Open::default();
            let mut model = HashMap::new();
            for (step, (add, id)) in steps.into_iter().enumerate() {
                if add {
                    let added = open.insert(&id, || step).copied();
                    prop_assert_eq!(added, (!model.contains_key(&id)).then_some(step));
                    model.entry(id.clone()).or_insert(step);
                } else {
                    prop_assert_eq!(open.remove(&id), model.remove(&id));
                }
                prop_assert_eq!(open.get(&id), model.get(&id));
                prop_assert_eq!(open.len(), model.len());
            }
            let mut tokens: Vec<_> = open.tokens().copied().collect();
            let mut expected: Vec<_> = model.into_values().collect();
            tokens.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(tokens, expected);
        }
    }

    #[test]
    fn one_request_that_stays_open_keeps_no_others() {
        let mut open = Open::default();
        open.insert(&Id::Int(0), || ());
        for number in 1..100_000 {
            open.insert(&Id::Int(number), || ()).unwrap();
            open.remove(&Id::Int(number)).unwrap();
            assert!(open.line.len() < 100);
        }
        assert_eq!(open.len(), 1);
    }
}
