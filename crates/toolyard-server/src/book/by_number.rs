//! What is numbered, in the order of its numbers.

use std::collections::VecDeque;

/// Turns by number. A new one has nearly always the highest number, and the lowest ones are removed first; hardly any
/// number is left out, so that a turn is found where its number says.
#[derive(Debug)]
pub(super) struct ByNumber<T>(VecDeque<(u64, T)>);

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> ByNumber<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place of this number, or that where it would be.
    fn place(&self, number: u64) -> Result<usize, usize> {
        let Some((first, _)) = self.0.front() else { return Err(0) };
        let guess = usize::try_from(number.saturating_sub(*first)).unwrap_or(usize::MAX);
        match self.0.get(guess) {
            Some((found, _)) if *found == number => Ok(guess),
            _ => self.0.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    /// Adds a turn, in the place of one of the same number.
    pub(super) fn insert(&mut self, number: u64, turn: T) {
        if self.0.back().is_none_or(|(last, _)| *last < number) {
            return self.0.push_back((number, turn));
        }
        match self.place(number) {
            Ok(place) => self.0[place].1 = turn,
            Err(place) => self.0.insert(place, (number, turn)),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.place(number).ok().map(|place| &self.0[place].1)
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.place(number).is_ok()
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let place = self.place(number).ok()?;
        self.0.remove(place).map(|(_, turn)| turn)
    }

    /// All of them, the lowest number first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().map(|(_, turn)| turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-4: a turn is found by its number, whichever numbers are there, and in whatever order they came and go.
    #[test]
    fn turns_are_found_by_their_numbers() {
        let mut all = ByNumber::default();
        let numbers = [5, 6, 7, 9, 12, 8, 1, 40, 41];
        numbers.into_iter().for_each(|number| all.insert(number, number * 10));
        all.insert(9, 91);
        let expected = |gone: &[u64]| {
            let mut left: Vec<_> = numbers.into_iter().filter(|number| !gone.contains(number)).collect();
            left.sort_unstable();
            left.into_iter().map(|number| if number == 9 { 91 } else { number * 10 }).collect::<Vec<_>>()
        };
        let mut gone = Vec::new();
        for number in [1, 7, 5, 41, 9, 12, 6, 40, 8] {
            assert_eq!(all.iter().copied().collect::<Vec<_>>(), expected(&gone));
            assert!([0, 2, 10, 13, 42, u64::MAX].into_iter().all(|number| !all.contains(number)));
            for number in numbers {
                assert_eq!(all.get(number).is_some(), !gone.contains(&number), "{number}");
            }
            assert!(all.remove(number).is_some() && all.remove(number).is_none());
            gone.push(number);
        }
        assert_eq!((all.len(), all.get(1)), (0, None));
    }
}
