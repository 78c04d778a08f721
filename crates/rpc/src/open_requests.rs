//! The table of the peer's open requests.

use crate::Id;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Open requests of the peer, each with a token.
///
/// Nearly every peer counts its ids upward: ascending ids live in a sorted deque. All other ids are
/// chosen freely by the peer, so they are hashed with a secret key.
#[derive(Debug)]
pub(crate) struct OpenRequests<T> {
    /// A closed request leaves a gap until it reaches the front or there are too many gaps.
    ascending: VecDeque<(i64, Option<T>)>,
    /// The number of entries in `ascending` that are not gaps.
    ascending_open: usize,
    others: HashMap<Id, T>,
}

/// The deque is compacted when it has more gaps than requests and more than this.
const MAX_GAPS: usize = 32;

impl<T> Default for OpenRequests<T> {
    fn default() -> Self {
        OpenRequests { ascending: VecDeque::new(), ascending_open: 0, others: HashMap::new() }
    }
}

impl<T> OpenRequests<T> {
    pub(crate) fn len(&self) -> usize {
        self.ascending_open + self.others.len()
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = &T> {
        self.ascending.iter().filter_map(|(_, token)| token.as_ref()).chain(self.others.values())
    }

    pub(crate) fn get(&self, id: &Id) -> Option<&T> {
        let token = self.position(id).and_then(|at| self.ascending.get(at)?.1.as_ref());
        token.or_else(|| self.others.get(id))
    }

    /// Adds a request. Returns `None` if the id is in use.
    pub(crate) fn insert(&mut self, id: &Id, token: impl FnOnce() -> T) -> Option<&T> {
        let Id::Int(number) = *id else { return self.insert_other(id, token) };
        if !self.others.is_empty() && self.others.contains_key(id) {
            return None;
        }
        if self.ascending.back().is_none_or(|(last, _)| *last < number) {
            self.ascending.push_back((number, None));
        }
        let Some(at) = self.position(id) else { return self.insert_other(id, token) };
        let (_, slot) = self.ascending.get_mut(at)?;
        if slot.is_some() {
            return None;
        }
        self.ascending_open += 1;
        Some(slot.insert(token()))
    }

    fn insert_other(&mut self, id: &Id, token: impl FnOnce() -> T) -> Option<&T> {
        match self.others.entry(id.clone()) {
            Entry::Vacant(entry) => Some(entry.insert(token())),
            Entry::Occupied(_) => None,
        }
    }

    pub(crate) fn remove(&mut self, id: &Id) -> Option<T> {
        let token = self.position(id).and_then(|at| self.ascending.get_mut(at)?.1.take());
        let Some(token) = token else { return self.others.remove(id) };
        self.ascending_open -= 1;
        while self.ascending.front().is_some_and(|(_, token)| token.is_none()) {
            self.ascending.pop_front();
        }
        if self.ascending.len() > 2 * self.ascending_open + MAX_GAPS {
            self.ascending.retain(|(_, token)| token.is_some());
        }
        Some(token)
    }

    /// The index of an id in the deque; usually the first or the last.
    fn position(&self, id: &Id) -> Option<usize> {
        let Id::Int(number) = id else { return None };
        let last = self.ascending.len().checked_sub(1)?;
        if self.ascending.get(last)?.0 == *number {
            return Some(last);
        }
        if self.ascending.front()?.0 == *number {
            return Some(0);
        }
        self.ascending.binary_search_by_key(number, |(id, _)| *id).ok()
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
        // shows RPC-08, RPC-24: an id is open once, whatever the order in which ids come and go
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), id()), 0..300)) {
            let mut open = OpenRequests::default();
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
        let mut open = OpenRequests::default();
        open.insert(&Id::Int(0), || ());
        for number in 1..100_000 {
            open.insert(&Id::Int(number), || ()).unwrap();
            open.remove(&Id::Int(number)).unwrap();
            assert!(open.ascending.len() < 100);
        }
        assert_eq!(open.len(), 1);
    }
}
