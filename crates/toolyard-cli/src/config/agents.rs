//! `[agents.NAME]`: the agents that `toolyard supervise` starts, and what each may do (AG-5).

use super::{
    section::{Placed, Section, Value},
    variables,
};
use std::{
    collections::BTreeMap,
    env,
    ops::Range,
    path::{Path, PathBuf},
};
use toolyard::{FsMode, HostPattern, Redactor};
use toolyard_agents::{AgentLimits, Channel, Model, Place, Profile};
use toolyard_egress::{Addresses, Egress, Upstream};
use toolyard_process::LastingLimits;

const CHANNELS: &[(&str, Channel)] =
    &[(Channel::Stdio.as_str(), Channel::Stdio), (Channel::Fd3.as_str(), Channel::Fd3)];

const PLACES: &[(&str, Place)] = &[("process", Place::Process), ("host", Place::Host)];

/// The tools that only agents have.
pub(super) const AGENTS_TOOLS: [&str; 4] = ["Agent", "Echo", "Read", "Write"];

/// An agent as it is configured.
#[derive(Debug, Clone)]
pub(crate) struct AgentSettings {
    /// What it is started from.
    pub(crate) profile: Profile,
    /// How many of it are started; the others are started by agents.
    pub(crate) instances: usize,
    /// What each is given.
    pub(crate) input: Option<serde_json::Value>,
    /// The secrets of its models and its environment.
    pub(crate) secrets: Vec<String>,
}

/// Reads the section.
pub(super) fn read(mut section: Section<'_>, here: &Path) -> BTreeMap<String, AgentSettings> {
    let mut agents = BTreeMap::new();
    let mut spawned = Vec::new();
    for (name, at, inner) in section.sections() {
        if !toolyard::AgentPath::is_name(&name) {
            section.report(
                &at,
                format!("'{name}' is no name of an agent: a letter, then letters, digits, '.', '_', '-'"),
            );
        }
        if let Some(agent) = agent(inner, &at, here, &mut spawned) {
            agents.insert(name, agent);
        }
    }
    for (name, at) in spawned {
        if !agents.contains_key(&name) && section.is_valid() {
            let nearest = super::nearest(&name, agents.keys().map(String::as_str));
            section.report(&at, format!("may_spawn: no agent is called '{name}'; {nearest}"));
        }
    }
    section.finish();
    agents
}

/// Registers the secrets of all agents with the redactor.
pub(super) fn redact_secrets(agents: &BTreeMap<String, AgentSettings>, redactor: Redactor) -> Redactor {
    let secrets = agents.values().flat_map(|agent| &agent.secrets);
    secrets.fold(redactor, |redactor, secret| redactor.clone().with_secret(secret).unwrap_or(redactor))
}

fn agent(
    mut section: Section<'_>,
    at: &Range<usize>,
    here: &Path,
    spawned: &mut Vec<Placed<String>>,
) -> Option<AgentSettings> {
    let command: Vec<String> = texts(section.strings("command"));
    if command.is_empty() {
        let prefix = section.prefix();
        section.report(at, format!("{prefix}command is missing: the program and its arguments, such as [\"python3\", \"agent.py\"]"));
    }
    let mut command = command.into_iter();
    let mut profile = Profile::new(command.next().unwrap_or_default()).args(command);
    profile = profile.tools(texts(section.strings("tools")));
    for (text, at) in section.strings("fs").unwrap_or_default() {
        let granted = grant(&text, here)
            .and_then(|(mode, path)| profile.clone().fs(mode, path).map_err(|error| error.to_string()));
        profile = section.parsed("fs", &at, granted).unwrap_or(profile);
    }
    for (host, at) in section.strings("net").unwrap_or_default() {
        profile = profile.net(section.parsed("net", &at, host.parse::<HostPattern>()));
    }
    for (path, at) in section.strings("read").unwrap_or_default() {
        let path = here.join(path);
        if !path.exists() {
            section.report(&at, format!("{}read: there is no '{}'", section.prefix(), path.display()));
        }
        profile = profile.read(path);
    }
    if let Some((place, _)) = section.choice("sandbox", PLACES) {
        profile = profile.place(place);
    }
    if let Some((channel, _)) = section.choice("channel", CHANNELS) {
        profile = profile.channel(channel);
    }
    let mut secrets = Vec::new();
    for variable in variables::read(section.section("env")) {
        if variable.is_secret {
            secrets.push(variable.value.clone());
        }
        profile = profile.env(variable.name, variable.value);
    }
    profile = profile.limits(limits(section.section("limits")));
    let mut models = section.section("http");
    for (name, at, inner) in models.sections() {
        if let Some((model, secret)) = model(&name, &at, inner) {
            secrets.extend(secret);
            profile = profile.model(model);
        }
    }
    models.finish();
    let may_spawn = section.strings("may_spawn").unwrap_or_default();
    profile = profile.may_spawn(may_spawn.iter().map(|(name, _)| name.as_str()));
    spawned.extend(may_spawn);
    let instances = section.integer("instances", 0, 1_000).unwrap_or(1);
    let input = section.take("input").and_then(|value| input(&section, value));
    section.finish();
    let instances = usize::try_from(instances).unwrap_or(usize::MAX);
    Some(AgentSettings { profile, instances, input, secrets })
}

fn texts(list: Option<Vec<Placed<String>>>) -> Vec<String> {
    list.into_iter().flatten().map(|(text, _)| text).collect()
}

/// A grant such as `rw:data`, relative to `here`: its mode, and where it lies.
///
/// # Errors
/// What is wrong with it, and how one is written.
pub(crate) fn grant(text: &str, here: &Path) -> Result<(FsMode, PathBuf), String> {
    let (mode, path) = match text.split_once(':') {
        Some(("r", path)) => (FsMode::Read, path),
        Some(("w", path)) => (FsMode::Write, path),
        Some(("rw", path)) => (FsMode::ReadWrite, path),
        _ => return Err(format!("'{text}' must be r:PATH, w:PATH or rw:PATH")),
    };
    let there = here.join(path);
    let found = there.canonicalize().map_err(|error| format!("'{}': {error}", there.display()))?;
    Ok((mode, found))
}

fn limits(mut section: Section<'_>) -> AgentLimits {
    let limits = AgentLimits {
        process: LastingLimits {
            memory: section.size("memory"),
            memory_per_process: section.size("memory_per_process"),
            processes: section.small_count("processes").map(Into::into),
            open_files: section.small_count("open_files").map(Into::into),
        },
        wall_time: section.duration("wall_time"),
        max_in_flight: section.count("max_in_flight"),
    };
    section.finish();
    limits
}

/// Reads a model, and its secret.
fn model(name: &str, at: &Range<usize>, mut section: Section<'_>) -> Option<(Model, Option<String>)> {
    let origin = needed(&mut section, at, "origin", "such as \"https://api.openai.com\"");
    let env = needed(
        &mut section,
        at,
        "env",
        "the variable that tells the agent its URL, such as \"OPENAI_BASE_URL\"",
    );
    let path = section.string("path").and_then(|(path, at)| {
        let begins = path.starts_with('/').then_some(path).ok_or("must begin with '/'");
        section.parsed("path", &at, begins)
    });
    let path = path.unwrap_or_default();
    let secret = section.string("secret").and_then(|(text, at)| match text.strip_prefix('$') {
        Some(from) => {
            let set = env::var(from).map_err(|_| format!("the environment variable {from} is not set"));
            section.parsed("secret", &at, set)
        }
        None => {
            let what = "secret must be the name of an environment variable, such as \"$OPENAI_API_KEY\"";
            section.report(&at, format!("{}{what}", section.prefix()));
            None
        }
    });
    let header = section.string("header");
    let may = Addresses::with_private(section.boolean("allow_private").unwrap_or_default());
    if let Some((_, at)) =
        header.as_ref().filter(|(header, _)| header.contains("{secret}") != secret.is_some())
    {
        let what = "{secret} in the header, and secret: one needs the other";
        section.report(at, format!("{}{what}", section.prefix()));
    }
    let headers = header.and_then(|(header, at)| {
        let split = header.split_once(':').ok_or("must be 'NAME: VALUE', with {secret} for the secret");
        let (name, value) = section.parsed("header", &at, split)?;
        let value = value.trim().replace("{secret}", secret.as_deref().unwrap_or_default());
        Some((name.trim().to_owned(), value))
    });
    let requests_max = section.integer("requests_max", 1, u64::from(u32::MAX));
    let bytes_max = section.size("bytes_max");
    let is_valid = section.is_valid();
    let upstream = origin.filter(|_| is_valid).and_then(|(origin, at)| {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let upstream = Upstream::new(name, &origin, may, headers, &Egress::new());
        section.parsed("origin", &at, upstream)
    });
    section.finish();
    let model =
        Model { upstream: upstream?, name: name.to_owned(), path, env: env?.0, requests_max, bytes_max };
    Some((model, secret))
}

fn needed(
    section: &mut Section<'_>,
    at: &Range<usize>,
    key: &'static str,
    what: &str,
) -> Option<Placed<String>> {
    let found = section.string(key);
    if found.is_none() && !section.was_given(key) {
        let prefix = section.prefix();
        section.report(at, format!("{prefix}{key} is missing: {what}"));
    }
    found
}

/// An input, which may be anything but a date.
fn input(section: &Section<'_>, value: Value<'_>) -> Option<serde_json::Value> {
    super::json::of(value)
        .map_err(|(what, at)| section.report(&at, format!("{}input: {what}", section.prefix())))
        .ok()
}
