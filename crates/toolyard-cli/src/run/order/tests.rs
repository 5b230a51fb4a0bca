use super::*;
use std::{fs, path::PathBuf};
use toolyard_wire::Episode;

/// An order of results in a file of this name.
fn order(name: &str) -> (Order, PathBuf) {
    let path = std::env::temp_dir().join(format!("toolyard-order-{name}-{}.jsonl", std::process::id()));
    let file = crate::run::results_file::ResultsFile::open(&path, &[]).unwrap();
    (Order::new(Results::File(file)), path)
}

fn episode(id: &str) -> Episode {
    Episode::parse_line(&format!(r#"{{"id":"{id}","turns":[[],[]]}}"#)).unwrap()
}

/// The ids and turns in a file, which is removed.
fn taken(path: &PathBuf) -> String {
    let text = fs::read_to_string(path).unwrap();
    fs::remove_file(path).unwrap();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{}{} ", line["id"].as_str().unwrap(), line["turn"])
    };
    text.lines().map(line).collect()
}

/// KT-9: however episodes end, their results are in the order of the input, and each is written as a whole.
#[test]
fn results_are_in_the_order_of_the_input() {
    let (mut order, path) = order("input");
    let [a, b, c] = ["a", "b", "c"].map(episode);
    order.line(2, &c.results(0, &[])).unwrap();
    order.line(0, &a.results(0, &[])).unwrap();
    order.line(2, &c.results(1, &[])).unwrap();
    order.end(2, End::Whole).unwrap();
    order.line(1, &b.results(0, &[])).unwrap();
    order.line(0, &a.results(1, &[])).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    order.end(0, End::Whole).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().lines().count(), order.written()), (2, 1));
    order.line(1, &b.results(1, &[])).unwrap();
    order.end(1, End::Whole).unwrap();
    assert_eq!((taken(&path).as_str(), order.written()), ("a0 a1 b0 b1 c0 c1 ", 3));
    assert_eq!(order.held_bytes, 0);
}

/// KT-9: nothing is written behind an episode that is left out.
#[test]
fn nothing_follows_what_is_left_out() {
    let (mut order, path) = order("left-out");
    let [a, b, c] = ["a", "b", "c"].map(episode);
    for (place, episode) in [(0, &a), (1, &b), (2, &c)] {
        order.line(place, &episode.results(0, &[])).unwrap();
    }
    order.end(2, End::Whole).unwrap();
    order.end(1, End::LeftOut).unwrap();
    order.end(0, End::Whole).unwrap();
    assert_eq!((taken(&path).as_str(), order.written()), ("a0 ", 1));
}

/// KT-9: no episode starts far ahead of the first unfinished one, and what is held is bounded in bytes too.
#[test]
fn what_is_held_is_bounded() {
    let (mut order, path) = order("bounded");
    let starts = |order: &Order, jobs| (0..100).filter(|place| order.may_start(*place, jobs)).count();
    assert_eq!((starts(&order, 1), starts(&order, 3)), (5, 13));
    order.end(0, End::Whole).unwrap();
    assert_eq!((order.may_start(13, 3), order.may_start(14, 3)), (true, false));
    let long = episode(&"x".repeat(HELD_BYTES_MAX / 2));
    [0, 1].iter().for_each(|turn| order.line(2, &long.results(*turn, &[])).unwrap());
    assert_eq!([1, 2, 3].map(|place| order.room().is_for(place)), [true, false, false]);
    assert_eq!([1, 3].map(|place| order.may_start(place, 3)), [true, false]);
    order.end(2, End::Whole).unwrap();
    order.end(1, End::Whole).unwrap();
    assert!(order.room().is_for(9) && order.held.is_empty() && order.held_bytes == 0);
    fs::remove_file(path).unwrap();
}
