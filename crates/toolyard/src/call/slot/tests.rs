use super::*;
use crate::call::ending::Ending;
use toolyard_admission::Held;

/// A waiting call costs its slot, and half of that is the `Call` itself. A life is as large as its largest variant
/// and a slot is a multiple of eight bytes, so if one of these types grows, the others grow with it.
#[test]
fn a_slot_is_small_beside_its_call() {
    assert!(size_of::<Held>() <= 24);
    assert!(size_of::<Started>() <= 40);
    assert!(size_of::<Ending>() <= 64);
    assert!(size_of::<Life>() <= 64);
    assert!(size_of::<Option<Cleared>>() <= 32);
    assert!(size_of::<Slot>() - size_of::<Call>() <= 120);
}

/// Results are collected into the memory of the slots (`results.rs`). If a slot's size were not a multiple of a
/// result's, that memory would be reallocated first, which costs a batch of one call more than all that a smaller
/// slot saves.
#[test]
fn results_fill_the_memory_of_the_slots() {
    assert_eq!(size_of::<Slot>() % size_of::<Outcome>(), 0, "{} {}", size_of::<Slot>(), size_of::<Outcome>());
    assert_eq!(align_of::<Slot>(), align_of::<Outcome>());
}
