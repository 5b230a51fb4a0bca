//! Suggestions for mistyped names.

/// Names less similar than this are not suggested.
const LIKENESS_MIN: f64 = 0.5;

/// Returns `did you mean 'read'?`, or the list of all names if none is similar.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match nearest_name(name, known.iter().copied()) {
        Some(best) => format!("did you mean '{best}'?"),
        None => format!("available: {}", known.join(", ")),
    }
}

/// The known name that is most similar; `None` if none is similar.
pub(crate) fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        strsim::jaro_winkler(name, candidate).max(strsim::normalized_damerau_levenshtein(name, candidate))
    };
    let best = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|best| likeness(best) >= LIKENESS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expect: &str) {
        assert_eq!(nearest(name, ["read", "concurrent"].into_iter()), expect);
    }

    #[test]
    fn the_nearest_name_is_suggested_or_all_are_listed() {
        check("raed", "did you mean 'read'?");
        check("concurent", "did you mean 'concurrent'?");
        check("zzz", "available: read, concurrent");
    }
}
