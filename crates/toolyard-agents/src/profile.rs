//! What an agent is started from, and what it may do.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    time::Duration,
};
use toolyard::{Capabilities, FsGrant, FsGrantError, FsMode, HostPattern};
use toolyard_egress::Upstream;
use toolyard_process::LastingLimits;

/// An agent as it is configured (AG-5): its program, and what that may do.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use toolyard::FsMode;
/// use toolyard_agents::Profile;
/// let profile = Profile::new("python3")
///     .args(["agent.py"])
///     .tools(["Read"])
///     .fs(FsMode::Read, "/data")?;
/// assert!(profile.capabilities().path(FsMode::Read, Path::new("data/notes.md")));
/// # Ok::<(), toolyard::FsGrantError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Profile {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) tools: BTreeSet<String>,
    pub(crate) fs: Vec<FsGrant>,
    pub(crate) net: Vec<HostPattern>,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) place: Place,
    pub(crate) channel: Channel,
    pub(crate) limits: AgentLimits,
    pub(crate) models: Vec<Model>,
    pub(crate) may_spawn: BTreeSet<String>,
}

/// Where an agent's program runs (AG-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// In the sandbox *process*: all that it can do is ask.
    #[default]
    Process,
    /// On the host, with the rights of this program: what it asks is checked, and what it does by itself is not.
    Host,
}

/// By what an agent asks (AG-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Channel {
    /// Its standard input and output.
    #[default]
    Stdio,
    /// A socket on descriptor 3, which leaves its standard output free; that is logged as its standard error is. Unix
    /// alone, and it needs `/bin/sh`.
    Fd3,
}

impl Channel {
    /// Its name, as the agent finds it in `TOOLYARD_CHANNEL`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Fd3 => "fd3",
        }
    }
}

/// What an agent may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentLimits {
    /// What its processes may use.
    pub process: LastingLimits,
    /// How long it may live.
    pub wall_time: Option<Duration>,
    /// Calls of it that run at once, over all classes.
    pub max_in_flight: Option<std::num::NonZeroUsize>,
}

/// A model that an agent reaches, at one origin, without holding its key (AG-12).
#[derive(Debug, Clone)]
pub struct Model {
    /// Where, and with which header.
    pub upstream: Upstream,
    /// The name of that upstream: the first segment of the paths at which the agent finds it.
    pub name: String,
    /// What follows that name in the URL that the agent is told, such as `/v1`.
    pub path: String,
    /// The variable that tells the agent the URL.
    pub env: String,
    /// How many of its requests may be answered, for each agent.
    pub requests_max: Option<u64>,
    /// After how many bytes, of requests and answers, there is no further request, for each agent.
    pub bytes_max: Option<u64>,
}

impl Profile {
    /// An agent whose program is at this path, or found by this name, and which may do nothing.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            tools: BTreeSet::new(),
            fs: Vec::new(),
            net: Vec::new(),
            read: Vec::new(),
            place: Place::default(),
            channel: Channel::default(),
            limits: AgentLimits::default(),
            models: Vec::new(),
            may_spawn: BTreeSet::new(),
        }
    }

    /// Adds arguments of the program.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment, which has nothing of this program's.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Lets it call these tools, and no others.
    #[must_use]
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools.extend(names.into_iter().map(Into::into));
        self
    }

    /// Lets its tools use a path of the host with everything below it, in this mode. What no grant covers is `fs_denied`.
    ///
    /// # Errors
    /// [`FsGrantError`] for a path that is relative to another one, or has `..`.
    pub fn fs(mut self, mode: FsMode, path: impl Into<PathBuf>) -> Result<Self, FsGrantError> {
        let path = path.into();
        // Relative to the root, as all paths of agents are.
        let inside =
            path.strip_prefix("/").map_err(|_| FsGrantError::Absolute(path.display().to_string()))?;
        let inside = if inside.as_os_str().is_empty() { std::path::Path::new(".") } else { inside };
        self.fs.push(FsGrant::new(mode, inside)?);
        Ok(self)
    }

    /// Lets its tools reach these hosts. Its program reaches none by itself.
    #[must_use]
    pub fn net(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        self.net.extend(hosts);
        self
    }

    /// Lets its program read this path of the host, such as the environment of an interpreter.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Sets where its program runs.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Sets by what it asks.
    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.channel = channel;
        self
    }

    /// Sets what it may use.
    #[must_use]
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets it reach a model.
    #[must_use]
    pub fn model(mut self, model: Model) -> Self {
        self.models.push(model);
        self
    }

    /// Lets it start agents of these profiles, by the tool `Agent` (AG-10).
    #[must_use]
    pub fn may_spawn<T: Into<String>>(mut self, profiles: impl IntoIterator<Item = T>) -> Self {
        self.may_spawn.extend(profiles.into_iter().map(Into::into));
        self
    }

    /// What its calls may touch: nothing that it was not given.
    pub fn capabilities(&self) -> Capabilities {
        let tools = self.tools.iter().map(String::as_str);
        Capabilities::default().tools(tools).fs(self.fs.iter().cloned()).net(self.net.iter().cloned())
    }

    /// This profile, within what a parent's allows: its process reads what both read, reaches the models of both, and has
    /// the smaller of each limit (AG-10).
    #[must_use]
    pub(crate) fn within(mut self, parent: &Self) -> Self {
        if parent.place == Place::Host {
            // It reaches whatever this program does.
            self.limits = self.limits.min(parent.limits);
            return self;
        }
        let common = |own: &PathBuf| {
            let lies = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
            let own_lies = lies(own);
            let covered =
                parent.read.iter().filter_map(move |theirs| match own_lies.starts_with(lies(theirs)) {
                    true => Some(own.clone()),
                    false => lies(theirs).starts_with(&own_lies).then(|| theirs.clone()),
                });
            covered.collect::<Vec<_>>()
        };
        self.read = self.read.iter().flat_map(common).collect();
        // Where a model is, and with which secret, its parent's says.
        let theirs = |name: &str| parent.models.iter().find(|theirs| theirs.name == name);
        self.models.retain(|model| theirs(&model.name).is_some());
        for model in &mut self.models {
            if let Some(theirs) = theirs(&model.name) {
                model.upstream = theirs.upstream.clone();
            }
        }
        self.place = Place::Process;
        self.limits = self.limits.min(parent.limits);
        self
    }
}

impl AgentLimits {
    fn min(self, other: Self) -> Self {
        fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        let (own, theirs) = (self.process, other.process);
        Self {
            process: LastingLimits {
                memory: smaller(own.memory, theirs.memory),
                memory_per_process: smaller(own.memory_per_process, theirs.memory_per_process),
                processes: smaller(own.processes, theirs.processes),
                open_files: smaller(own.open_files, theirs.open_files),
            },
            wall_time: smaller(self.wall_time, other.wall_time),
            max_in_flight: smaller(self.max_in_flight, other.max_in_flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// AG-10: what a child's process may reach is within what its parent's may.
    #[test]
    fn a_child_is_within_its_parent() {
        let parent = Profile::new("p")
            .read("/opt/env")
            .read("/srv/a/b")
            .limits(AgentLimits { wall_time: Some(Duration::from_secs(60)), ..AgentLimits::default() });
        let child = Profile::new("c").read("/opt/env/lib").read("/srv/a").read("/home").place(Place::Host);
        let within = child.within(&parent);
        assert_eq!(within.read, [Path::new("/opt/env/lib"), Path::new("/srv/a/b")]);
        assert_eq!(within.place, Place::Process);
        assert_eq!(within.limits.wall_time, Some(Duration::from_secs(60)));
    }

    /// AG-5: paths of agents are those of the host.
    #[test]
    fn grants_are_absolute() {
        let profile = Profile::new("p").fs(FsMode::Read, "/").unwrap();
        assert!(profile.capabilities().path(FsMode::Read, Path::new("etc/passwd")));
        assert!(Profile::new("p").fs(FsMode::Read, "data").is_err());
        assert!(Profile::new("p").fs(FsMode::Read, "/data/../etc").is_err());
        let none = Profile::new("p").capabilities();
        assert!(!none.any_host() && none.bounds_net());
        assert!(!none.tool("Read") && !none.path(FsMode::Read, Path::new("etc/passwd")));
    }
}
