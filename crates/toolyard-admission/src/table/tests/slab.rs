use crate::slab::Slab;

/// A key names its value and no other, however often its slot is reused.
#[test]
fn a_key_names_nothing_once_its_value_is_gone() {
    let mut slab = Slab::new();
    let other = slab.insert(0);
    let mut before = slab.insert(1);
    for value in 2..1000 {
        assert_eq!(slab.remove(before), Some(value - 1));
        let key = slab.insert(value);
        assert_eq!((slab.get(before), slab.get(key), slab.get(other)), (None, Some(&value), Some(&0)));
        assert_eq!(slab.remove(before), None);
        before = key;
    }
    assert_eq!(
        slab.iter().map(|(key, value)| (key, *value)).collect::<Vec<_>>(),
        [(other, 0), (before, 999)]
    );
}
