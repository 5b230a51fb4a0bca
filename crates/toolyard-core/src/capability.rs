//! What an agent may touch: tools, paths and hosts (PO-1b).
//!
//! ```text
//!   call ─► tool named?  ─► arguments ─► each path ─► under a granted directory, in that mode?
//!           no: permission_denied        each host ─► fits a granted pattern?    no: fs_denied, net_denied
//! ```
//!
//! The checks compare canonical forms only: a path relative to the workspace's root without `..` and with links
//! followed, and a host as an HTTP client reads it.

mod fs;
mod net;

pub use fs::{FsGrant, FsGrantError};
pub use net::{Host, HostError, HostPattern, HostPatternError};

use crate::{ContentHash, FsMode};
use std::{collections::BTreeSet, path::Path, sync::Arc};

/// What an agent may touch: tools, paths and hosts.
///
/// A list that is not set bounds nothing; an empty list allows nothing.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use toolyard_core::{Capabilities, FsGrant, FsMode, Host};
/// let may = Capabilities::default()
///     .tools(["read_file", "fetch"])
///     .fs([FsGrant::new(FsMode::Read, "docs")?])
///     .net(["*.example.com".parse()?]);
/// assert!(may.tool("fetch") && !may.tool("shell"));
/// assert!(may.path(FsMode::Read, Path::new("docs/a.md")));
/// assert!(!may.path(FsMode::Write, Path::new("docs/a.md")));
/// assert!(!may.path(FsMode::Read, Path::new("docs-private/a.md")));
/// assert!(may.host(&Host::parse("https://api.example.com/v1")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    tools: Option<BTreeSet<Arc<str>>>,
    fs: Option<Vec<FsGrant>>,
    net: Option<Vec<HostPattern>>,
}

impl Capabilities {
    /// Sets the tools the agent may call. Others are `permission_denied`, except those that
    /// [need no capability](crate::ToolSpec::without_capability).
    #[must_use]
    pub fn tools<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the paths the agent may name in arguments that tools [declare as paths](crate::ToolSpec::requires_fs).
    /// Others are `fs_denied`.
    #[must_use]
    pub fn fs(mut self, grants: impl IntoIterator<Item = FsGrant>) -> Self {
        self.fs = Some(grants.into_iter().collect());
        self
    }

    /// Sets the hosts the agent may name in arguments that tools [declare as hosts](crate::ToolSpec::requires_net).
    /// Others are `net_denied`.
    #[must_use]
    pub fn net(mut self, patterns: impl IntoIterator<Item = HostPattern>) -> Self {
        self.net = Some(patterns.into_iter().collect());
        self
    }

    /// Whether the agent may call a tool of this name.
    pub fn tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(name))
    }

    /// The grants of paths; `None` if paths are not bounded.
    pub fn fs_grants(&self) -> Option<&[FsGrant]> {
        self.fs.as_deref()
    }

    /// The patterns of hosts; `None` if hosts are not bounded.
    pub fn net_patterns(&self) -> Option<&[HostPattern]> {
        self.net.as_deref()
    }

    /// Whether paths are bounded at all.
    pub fn bounds_fs(&self) -> bool {
        self.fs.is_some()
    }

    /// Whether hosts are bounded at all.
    pub fn bounds_net(&self) -> bool {
        self.net.is_some()
    }

    /// Whether this path may be used in this mode. The path must be canonical and relative to the workspace's root, as
    /// [`PathScope::resolve`] returns it.
    ///
    /// [`PathScope::resolve`]: crate::PathScope::resolve
    pub fn path(&self, mode: FsMode, path: &Path) -> bool {
        let Some(grants) = &self.fs else { return true };
        let may = |mode| grants.iter().any(|grant| grant.covers(mode, path));
        match mode {
            FsMode::Read | FsMode::Write => may(mode),
            // Two grants together may cover both modes.
            FsMode::ReadWrite => may(FsMode::Read) && may(FsMode::Write),
        }
    }

    /// Whether this host may be used.
    pub fn host(&self, host: &Host) -> bool {
        self.net.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.covers(host)))
    }

    /// Whether every host may be used, which a call needs if it leaves the choice of the host to its tool.
    pub fn any_host(&self) -> bool {
        self.net.as_ref().is_none_or(|patterns| patterns.iter().any(HostPattern::is_any))
    }

    /// What both allow: a tool, a path in a mode, or a host is within these only if it is within each of them (HT-7).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Capabilities, FsGrant, FsMode};
    /// let ours = Capabilities::default().tools(["read_file", "write_file"]).fs([FsGrant::new(FsMode::ReadWrite, "docs")?]);
    /// let asked = Capabilities::default().tools(["write_file", "deploy"]).fs([FsGrant::new(FsMode::Write, ".")?]);
    /// let both = ours.both(asked);
    /// assert!(both.tool("write_file") && !both.tool("deploy") && !both.tool("read_file"));
    /// assert_eq!(both.fs_grants(), Some([FsGrant::new(FsMode::Write, "docs")?].as_slice()));
    /// # Ok::<(), toolyard_core::FsGrantError>(())
    /// ```
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self {
            tools: stricter(self.tools, other.tools, |one, other| {
                one.intersection(&other).cloned().collect()
            }),
            fs: stricter(self.fs, other.fs, |one, other| pairs(&one, &other, FsGrant::common)),
            net: stricter(self.net, other.net, |one, other| pairs(&one, &other, HostPattern::common)),
        }
    }

    /// A hash of its content; the order of grants and patterns does not count (SM-7).
    pub fn fingerprint(&self) -> [u8; 32] {
        // Every field, so that none is forgotten. A list that is missing is not an empty one.
        let Self { tools, fs, net } = self;
        let tool = |name: &Arc<str>| ContentHash::new("tool").text(name).finish();
        let tools = tools.as_ref().map(|it| ContentHash::new("tools").set(it.iter().map(tool)).finish());
        let fs =
            fs.as_ref().map(|it| ContentHash::new("fs").set(it.iter().map(FsGrant::fingerprint)).finish());
        let net = net.as_ref().map(|it| it.iter().map(HostPattern::fingerprint));
        let net = net.map(|it| ContentHash::new("net").set(it).finish());
        ContentHash::new("toolyard capabilities 1").option(tools).option(fs).option(net).finish()
    }
}

/// What two bounds leave; one that is missing bounds nothing.
fn stricter<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

/// What any two of them have in common, each once.
fn pairs<T: PartialEq>(one: &[T], other: &[T], common: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for each in one.iter().flat_map(|one| other.iter().filter_map(|other| common(one, other))) {
        if !all.contains(&each) {
            all.push(each);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-7: both together allow what each allows alone, and nothing else.
    #[test]
    fn both_allow_what_each_allows() {
        let paths = ["a", "a/b", "a/b/c", "b", "."];
        let modes = [FsMode::Read, FsMode::Write, FsMode::ReadWrite];
        let grants = || modes.iter().flat_map(|mode| paths.map(|path| FsGrant::new(*mode, path).unwrap()));
        let hosts =
            ["*", "*.x.de", "*.a.x.de", "a.x.de", "x.de", "10.0.0.1", "*:443", "a.x.de:443", "*.x.de:80"];
        let names = ["x.de", "a.x.de", "b.a.x.de", "10.0.0.1", "y.de", "a.x.de:443", "x.de:80", "b.x.de:80"];
        for (one, other) in grants().flat_map(|one| grants().map(move |other| (one.clone(), other))) {
            let [one, other] = [one, other].map(|grant| Capabilities::default().fs([grant]));
            let both = one.clone().both(other.clone());
            for (mode, path) in modes.iter().flat_map(|mode| paths.map(|path| (*mode, Path::new(path)))) {
                assert_eq!(both.path(mode, path), one.path(mode, path) && other.path(mode, path), "{both:?}");
            }
        }
        for (one, other) in hosts.iter().flat_map(|one| hosts.map(move |other| (*one, other))) {
            let [one, other] = [one, other].map(|host| Capabilities::default().net([host.parse().unwrap()]));
            let both = one.clone().both(other.clone());
            for name in names {
                let host = Host::parse(name).unwrap();
                assert_eq!(both.host(&host), one.host(&host) && other.host(&host), "{name} {both:?}");
            }
        }
        let (some, none) = (Capabilities::default().tools(["a", "b"]), Capabilities::default());
        assert_eq!(some.clone().both(none), some);
    }

    /// PO-1b: reading and writing may be granted separately.
    #[test]
    fn two_grants_make_up_for_one() {
        let grants = [(FsMode::Read, "."), (FsMode::Write, "out")];
        let grants = grants.map(|(mode, path)| FsGrant::new(mode, path).unwrap());
        let may = Capabilities::default().fs(grants);
        assert!(may.path(FsMode::ReadWrite, Path::new("out/a")));
        assert!(!may.path(FsMode::ReadWrite, Path::new("a")));
        assert!(may.path(FsMode::Read, Path::new("a")) && may.path(FsMode::Read, Path::new(".")));
    }

    #[test]
    fn what_is_empty_allows_nothing_and_what_is_not_said_everything() {
        let nothing = Capabilities::default().tools::<&str>([]).fs([]).net([]);
        let host = Host::parse("a.example").unwrap();
        assert!(!nothing.tool("t") && !nothing.path(FsMode::Read, Path::new("a")) && !nothing.host(&host));
        let all = Capabilities::default();
        assert!(all.tool("t") && all.path(FsMode::ReadWrite, Path::new("a")) && all.host(&host));
        assert!(all.any_host() && !nothing.any_host());
    }

    /// SM-7: every field counts, and the order within a list does not.
    #[test]
    fn the_fingerprint_is_that_of_the_content() {
        let fs = |grants: &[(FsMode, &str)]| {
            let grants = grants.iter().map(|(mode, path)| FsGrant::new(*mode, path).unwrap());
            Capabilities::default().fs(grants.collect::<Vec<_>>())
        };
        let net = |patterns: &[&str]| {
            let patterns = patterns.iter().map(|pattern| pattern.parse::<HostPattern>().unwrap());
            Capabilities::default().net(patterns.collect::<Vec<_>>())
        };
        let tools = |names: &[&'static str]| Capabilities::default().tools(names.to_vec());
        let (r, w, rw) = (FsMode::Read, FsMode::Write, FsMode::ReadWrite);
        for (one, other) in [
            (tools(&["a", "b"]), tools(&["b", "a"])),
            (fs(&[(r, "a"), (w, "b")]), fs(&[(w, "b"), (r, "./a")])),
            (net(&["a.b", "*"]), net(&["*", "a.b", "A.B"])),
        ] {
            assert_eq!(one.fingerprint(), other.fingerprint());
        }
        let others = [
            Capabilities::default(),
            tools(&[]),
            tools(&["a"]),
            tools(&["a", "b"]),
            tools(&["ab"]),
            fs(&[]),
            fs(&[(r, "a")]),
            fs(&[(w, "a")]),
            fs(&[(rw, "a")]),
            fs(&[(r, "a"), (w, "a")]),
            fs(&[(r, ".")]),
            net(&[]),
            net(&["*"]),
            net(&["*:80"]),
            net(&["a.b"]),
            net(&["*.a.b"]),
            net(&["a.b:80"]),
            net(&["a.b:81"]),
            tools(&["a"]).fs([]).net([]),
        ];
        let different: BTreeSet<_> = others.iter().map(Capabilities::fingerprint).collect();
        assert_eq!(different.len(), others.len());
    }
}
