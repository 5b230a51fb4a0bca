//! Starts an agent's program (AG-4, AG-11, AG-12).
//!
//! ```text
//!   Profile ─► command, files, models ─► Confinement ─► a helper ─► the program, confined
//!                       └─► Proxy ◄─ door ◄─ its requests to models
//! ```

#[cfg(target_os = "linux")]
use crate::profile::Model;
use crate::{
    profile::{Channel, Place, Profile},
    room::Kept,
};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};
use toolyard::AgentPath;
use toolyard_egress::Egress;
#[cfg(target_os = "linux")]
use toolyard_egress::Proxy;
#[cfg(target_os = "linux")]
use toolyard_process::{Cgroup, Door, Helper, Reached};
use toolyard_process::{Containment, Program, Started, plain_path};

/// The directory for an agent's own files, which end with it.
#[cfg(target_os = "linux")]
const SCRATCH: &str = "/tmp";

/// The size of that, in bytes. It is memory.
#[cfg(target_os = "linux")]
const SCRATCH_BYTES: u64 = 64 << 20;

/// The variables of this process that mean something to an agent.
const INHERITED: [&str; 6] = ["LANG", "LC_ALL", "LC_CTYPE", "PATH", "TERM", "TZ"];

/// The most bytes of an input that its variable has.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// By what agents are started.
#[derive(Debug, Clone, Default)]
pub struct Means {
    #[cfg(target_os = "linux")]
    pub(crate) helper: Option<Helper>,
    #[cfg(target_os = "linux")]
    pub(crate) cgroup: Option<Cgroup>,
    #[cfg(target_os = "linux")]
    pub(crate) system: Vec<PathBuf>,
    pub(crate) egress: Option<Egress>,
}

impl Means {
    /// Agents are started by this helper, which confines them and ends all that they start.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn helper(mut self, helper: Helper) -> Self {
        self.helper = Some(helper);
        self
    }

    /// Each agent gets a group in this one, those that an agent starts within its own (AG-10).
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn cgroup(mut self, cgroup: Cgroup) -> Self {
        self.cgroup = Some(cgroup);
        self
    }

    /// Adds parts of the system that agents reach, read only.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn system<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.system.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Sets the way out of requests to models.
    #[must_use]
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = Some(egress);
        self
    }

    fn containment(&self) -> Containment {
        #[cfg(target_os = "linux")]
        if let Some(helper) = &self.helper {
            return Containment::Helper(helper.clone());
        }
        Containment::Group
    }
}

/// An agent that was started.
pub(crate) struct Launched {
    pub(crate) started: Started,
    /// Serves the way to its models, until it is dropped.
    pub(crate) models: Option<BoxFuture<'static, ()>>,
}

/// Starts the program of an agent.
///
/// # Errors
/// What it cannot be given, or what it cannot be confined by.
pub(crate) fn start(
    profile: &Profile,
    agent: &AgentPath,
    input: Option<&Value>,
    means: &Means,
    kept: &Kept,
) -> io::Result<Launched> {
    let own = profile.env.iter();
    let program = command(profile)?
        .envs(INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))))
        .env("TOOLYARD_AGENT", agent.as_str())
        .env("TOOLYARD_CHANNEL", profile.channel.as_str())
        .envs(input_variable(input))
        .envs(own)
        .errors_apart()
        .helper_name("toolyard-agent");
    let (program, proxy) = match profile.place {
        Place::Host => (on_host(program, profile)?, None),
        Place::Process => confined(program, profile, means, kept)?,
    };
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only a confined program has a door"))]
    let mut started = program.start(&means.containment())?;
    #[cfg(target_os = "linux")]
    let models = proxy.zip(started.door.take()).map(|(proxy, door)| models(agent.clone(), proxy, door));
    #[cfg(not(target_os = "linux"))]
    let models = proxy.map(|never: std::convert::Infallible| match never {});
    Ok(Launched { started, models })
}

/// The program, and its input.
fn command(profile: &Profile) -> io::Result<Program> {
    let args = profile.args.iter().map(|arg| argument(arg));
    let program = Program::new(argument(profile.program.as_os_str())).args(args);
    match profile.channel {
        Channel::Stdio => Ok(program.piped_input()),
        #[cfg(unix)]
        Channel::Fd3 => Ok(program.socket_on_descriptor_3()),
        #[cfg(not(unix))]
        Channel::Fd3 => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "there is no channel 'fd3' here: use 'stdio'"))
        }
    }
}

/// The variable with what an agent is started with, if that is not too long for one.
fn input_variable(input: Option<&Value>) -> Option<(&'static str, String)> {
    let text = input?.to_string();
    (text.len() <= INPUT_BYTES_MAX).then_some(("TOOLYARD_INPUT", text))
}

fn on_host(program: Program, profile: &Profile) -> io::Result<Program> {
    match profile.models.is_empty() {
        true => Ok(program),
        false => Err(invalid(
            "a model is reached from the sandbox 'process' alone: on the host every program could use its key",
        )),
    }
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}

/// The way of an agent to its models, through this door.
#[cfg(target_os = "linux")]
fn models(agent: AgentPath, proxy: Proxy, door: Door) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        match door.opened().await {
            Ok(listener) => match proxy.serve(listener).await {},
            Err(error) => {
                tracing::warn!(agent = agent.as_str(), %error, "an agent's way to its models did not open");
            }
        }
    })
}

#[cfg(not(target_os = "linux"))]
fn confined(
    _: Program,
    _: &Profile,
    _: &Means,
    _: &Kept,
) -> io::Result<(Program, Option<std::convert::Infallible>)> {
    let why = "agents are confined on Linux alone; with sandbox = \"host\" they run with the rights of this program";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Confines a program to what its profile says.
#[cfg(target_os = "linux")]
fn confined(
    program: Program,
    profile: &Profile,
    means: &Means,
    kept: &Kept,
) -> io::Result<(Program, Option<Proxy>)> {
    let mut reached = Reached::new(means.system.iter().cloned());
    for path in &profile.read {
        reached.read(&plain_path(path)?)?;
    }
    for path in named_files(profile) {
        reached.read(&path)?;
    }
    let directory = directory(&reached)?;
    let confinement = reached.confinement().tmp_bytes(SCRATCH_BYTES);
    let confinement = confinement.lasting(profile.limits.process, kept.room.cgroup())?;
    let program = program.env("HOME", SCRATCH).env("TMPDIR", SCRATCH).directory(directory);
    if profile.models.is_empty() {
        return Ok((program.confined(confinement), None));
    }
    let url = |model: &Model| format!("http://127.0.0.1:{}/{}{}", Door::PORT, model.name, model.path);
    let program = program.envs(profile.models.iter().map(|model| (model.env.clone(), url(model))));
    let egress = means.egress.clone().unwrap_or_default();
    let upstream = |model: &Model| model.upstream.clone().quota(kept.quotas.get(&model.name));
    let proxy = profile.models.iter().map(upstream).fold(Proxy::new(&egress), Proxy::upstream);
    Ok((program.confined(confinement.door()), Some(proxy)))
}

/// The files that a command names: its program, if it is named by where it lies, and arguments that are files.
fn named_files(profile: &Profile) -> Vec<PathBuf> {
    let program = (profile.program.components().count() > 1).then_some(profile.program.as_os_str());
    let args = profile.args.iter().map(AsRef::<OsStr>::as_ref).filter(|arg| Path::new(arg).is_file());
    program.into_iter().chain(args).filter_map(|path| plain_path(Path::new(path)).ok()).collect()
}

/// What of them is run: the program, and the first file, which is an interpreter's script.
pub(crate) fn scripts(profile: &Profile) -> Vec<PathBuf> {
    let mut files = named_files(profile);
    files.truncate(usize::from(profile.program.components().count() > 1) + 1);
    files
}

/// An argument as it is passed on: a file that is named by going up is named by where it lies, as what is above it is not
/// there inside.
fn argument(arg: &OsStr) -> OsString {
    let path = Path::new(arg);
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let plain = (goes_up && path.is_file()).then(|| plain_path(path).ok()).flatten();
    plain.map_or_else(|| arg.to_owned(), PathBuf::into_os_string)
}

/// The directory that it starts in: that of this process, if it reaches something there, so that relative arguments lead
/// where they lead here.
#[cfg(target_os = "linux")]
fn directory(reached: &Reached) -> io::Result<PathBuf> {
    let ours = std::env::current_dir()?;
    let is_there = |reached: &Path| reached.starts_with(&ours) || ours.starts_with(reached);
    Ok(if reached.all().any(is_there) { ours } else { SCRATCH.into() })
}
