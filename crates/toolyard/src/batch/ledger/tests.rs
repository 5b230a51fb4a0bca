use super::*;

/// What a call holds that waits is its slot, and half of that is what it came with. A phase is as large as the largest of
/// what it holds, and a slot a multiple of eight: one of these that grows takes the others with it.
#[test]
fn a_slot_is_small_beside_its_call() {
    assert!(size_of::<Held>() <= 24);
    assert!(size_of::<Started>() <= 40);
    assert!(size_of::<Ending>() <= 64);
    assert!(size_of::<Phase>() <= 64);
    assert!(size_of::<Option<Cleared>>() <= 32);
    assert!(size_of::<Slot>() - size_of::<Call>() <= 120);
}

/// Results are handed over in the memory of the slots (`results.rs`). Were a slot not as large as some whole results, that
/// would be made smaller before, which costs a batch of one call more than all that a smaller slot saves.
#[test]
fn results_fill_the_memory_of_the_slots() {
    assert_eq!(size_of::<Slot>() % size_of::<Outcome>(), 0, "{} {}", size_of::<Slot>(), size_of::<Outcome>());
    assert_eq!(align_of::<Slot>(), align_of::<Outcome>());
}
