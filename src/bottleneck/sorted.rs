// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small sets in order, in memory that stays: a set of the library allocates when it gets its first
//! element, which in the tree of classes is for each packet.

/// Values in ascending order, each once.
#[derive(Debug)]
pub(super) struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> Sorted<T> {
    pub fn first(&self) -> Option<&T> {
        self.0.first()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub fn insert(&mut self, value: T) {
        if let Err(at) = self.0.binary_search(&value) {
            self.0.insert(at, value);
        }
    }

    pub fn remove(&mut self, value: &T) {
        if let Ok(at) = self.0.binary_search(value) {
            self.0.remove(at);
        }
    }
}
