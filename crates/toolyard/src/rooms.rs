//! The rooms of this crate point one way, and no room is a knot: what ARCHITECTURE.md draws, checked against the
//! sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    slice,
};

/// The most files of one room that may use each other in a circle.
const CIRCLE_MAX: usize = 12;

/// The names of a path, as in `crate::call::batch`; without `crate`, the place of a module.
type Names = Vec<String>;

type Modules = BTreeMap<Names, Module>;

/// Who uses whom: modules, or rooms.
type Arrows = BTreeMap<Names, BTreeSet<Names>>;

/// What the code of a module names.
#[derive(Default)]
struct Module {
    /// The paths that it uses.
    uses: Vec<Names>,
    /// The paths that it passes on to others, under these names.
    exports: BTreeMap<String, Names>,
}

impl Module {
    fn of(code: &str) -> Self {
        let mut module = Self::default();
        for statement in code.split(';') {
            let item = statement.rsplit_once("use ");
            let item = item.map(|(rest, tree)| (rest, rest.rsplit('\n').next().unwrap_or(rest).trim(), tree));
            let rest = match item {
                Some((rest, "", tree)) => {
                    module.uses.extend(branches(tree).into_iter().map(|(path, _)| path));
                    rest
                }
                Some((rest, "pub" | "pub(crate)" | "pub(super)", tree)) => {
                    module.exports.extend(branches(tree).into_iter().map(|(path, name)| (name, path)));
                    rest
                }
                _ => statement,
            };
            module.uses.extend(inline(rest));
        }
        module
    }
}

fn names(path: &str) -> Names {
    path.split("::").map(str::to_owned).collect()
}

/// The paths in code that is no `use`.
fn inline(code: &str) -> impl Iterator<Item = Names> {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    words.filter(|word| word.contains("::")).map(names)
}

/// The paths of a `use`, and the name that each gets.
fn branches(tree: &str) -> Vec<(Names, String)> {
    let Some((stem, group)) = tree.trim().split_once('{') else {
        let (path, name) = tree.trim().split_once(" as ").unwrap_or((tree.trim(), ""));
        let path = names(path.strip_suffix("::self").unwrap_or(path));
        let name = if name.is_empty() { path.last().expect("a path has a name") } else { name };
        return vec![(path.clone(), name.to_owned())];
    };
    let mut depth = 0;
    let group = group.strip_suffix('}').expect("a group ends").split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let group = group.filter(|branch| !branch.trim().is_empty());
    group.flat_map(|branch| branches(&format!("{stem}{}", branch.trim()))).collect()
}

/// The module that has what a path in module `at` leads to, beyond those that pass it on; `None` if it leads out of the
/// crate.
fn resolve(modules: &Modules, at: &Names, path: &Names) -> Option<Names> {
    let inner = |place: &Names, name: &String| [&place[..], slice::from_ref(name)].concat();
    let is_here = |name: &String| modules.contains_key(&inner(at, name));
    if !matches!(&*path[0], "crate" | "super" | "self") && !is_here(&path[0]) {
        return None;
    }
    let mut place = at.clone();
    for name in path {
        match &**name {
            "crate" => place.clear(),
            "super" => _ = place.pop(),
            "self" => {}
            _ if modules.contains_key(&inner(&place, name)) => place.push(name.clone()),
            _ => {
                let passed_on = modules.get(&place).and_then(|module| module.exports.get(name));
                let beyond = passed_on.and_then(|path| resolve(modules, &place, path));
                return beyond.or_else(|| modules.contains_key(&place).then_some(place));
            }
        }
    }
    modules.contains_key(&place).then_some(place)
}

/// Which module uses which. What a module passes on of those within it is no use: it is their door.
fn arrows(modules: &Modules) -> Arrows {
    let to = |(at, module): (&Names, &Module)| {
        let uses = module.uses.iter().filter_map(|path| resolve(modules, at, path));
        let exports = module.exports.values().filter_map(|path| resolve(modules, at, path));
        let to = uses.chain(exports.filter(|found| !found.starts_with(at)));
        (at.clone(), to.filter(|found| found != at).collect())
    };
    modules.iter().map(to).collect()
}

/// Which room uses which.
fn between_rooms(arrows: &Arrows) -> Arrows {
    let mut rooms = Arrows::new();
    for (from, to) in arrows {
        let to = to.iter().map(|to| to[..1].to_vec()).filter(|room| *room != from[..1]);
        rooms.entry(from[..1].to_vec()).or_default().extend(to);
    }
    rooms
}

/// All that one uses, and what those use.
fn reached<'a>(arrows: &'a Arrows, from: &'a Names) -> BTreeSet<&'a Names> {
    let (mut reached, mut ahead) = (BTreeSet::new(), vec![from]);
    while let Some(at) = ahead.pop() {
        ahead.extend(arrows[at].iter().filter(|to| reached.insert(*to)));
    }
    reached
}

/// Those that use each other, each set of them once.
fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<&Names>> {
    let reached: BTreeMap<_, _> = arrows.keys().map(|from| (from, reached(arrows, from))).collect();
    let circle = |from| reached[from].iter().copied().filter(|to| reached[to].contains(from)).collect();
    arrows.keys().map(circle).filter(|circle: &BTreeSet<_>| !circle.is_empty()).collect()
}

/// Adds the modules under this folder, without tests.
fn read(src: &Path, folder: &Path, modules: &mut Modules) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            read(src, &path, modules);
        } else if let Some(name) = name.strip_suffix(".rs")
            && !matches!(name, "tests" | "rooms" | "lib")
        {
            let place = path.strip_prefix(src).unwrap().with_extension("");
            let place = place.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
            modules.insert(place, Module::of(&code(&fs::read_to_string(&path).unwrap())));
        }
    }
}

/// The code in a text, without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap();
    text.lines().filter_map(|line| line.split("//").next()).collect::<Vec<_>>().join("\n")
}

fn arrows_of_this_crate() -> Arrows {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = Modules::new();
    read(&src, &src, &mut modules);
    arrows(&modules)
}

#[test]
fn no_room_uses_one_above_it() {
    let rooms = between_rooms(&arrows_of_this_crate());
    let uses = |from: &str, to: &str| rooms[&names(from)].contains(&names(to));
    assert!(uses("call", "gate") && uses("gate", "agent"), "{rooms:?}");
    assert!(circles(&rooms).is_empty(), "these rooms use each other: {:?}", circles(&rooms));
}

#[test]
fn no_circle_of_files_is_large() {
    let arrows = arrows_of_this_crate();
    for circle in circles(&arrows) {
        let files: Vec<_> = circle.iter().map(|place| place.join("/")).collect();
        assert!(files.len() <= CIRCLE_MAX, "{} files use each other: {files:?}", files.len());
    }
}

/// The circles of a crate with these modules.
fn check(modules: &[(&str, &str)], circle: &[&str], of_rooms: &[&str]) {
    let modules = modules.iter().map(|(place, text)| (names(place), Module::of(&code(text)))).collect();
    let arrows = arrows(&modules);
    let found =
        |arrows| circles(arrows).into_iter().flatten().map(|place| place.join("::")).collect::<Vec<_>>();
    assert_eq!(found(&arrows), circle);
    assert_eq!(found(&between_rooms(&arrows)), of_rooms);
}

#[test]
fn a_circle_is_seen() {
    let doors = ("a", "pub(crate) use b::{self as first, B};\nmod b;\nmod c;");
    check(&[doors, ("a::b", "struct B;"), ("a::c", "use super::B;")], &[], &[]);
    check(
        &[doors, ("a::b", "use super::c::C;"), ("a::c", "fn c(b: crate::a::B) {}")],
        &["a::b", "a::c"],
        &[],
    );
    check(
        &[doors, ("a::b", "let x = super::{\n};"), ("a::c", "// super::b\nuse super::first::B;")],
        &[],
        &[],
    );
    let uses = ("d", "use crate::{\n    a::{B, c::{C}},\n    e,\n};");
    check(&[doors, ("a::b", "struct B;"), ("a::c", ""), uses, ("e", "use crate::a::B;")], &[], &[]);
    check(&[doors, ("a::b", "use crate::d::D;"), ("a::c", ""), uses], &["a::b", "d"], &["a", "d"]);
    check(
        &[doors, ("a::b", "use crate::e::D;"), uses, ("e", "pub use super::d::D;")],
        &["a::b", "d", "e"],
        &["a", "d", "e"],
    );
}
