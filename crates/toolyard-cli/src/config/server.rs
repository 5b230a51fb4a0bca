//! `[server]`: who may do what over HTTP, and how much `toolyard serve` takes at once.

mod notify;

pub(crate) use notify::NotifySettings;

use super::{
    budget,
    policy::{self, CapabilityTexts},
    section::Section,
};
use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};
use toolyard::Redactor;
use toolyard_server::{Bounds, Scope, SecretHash, Token};

/// The settings of `toolyard serve`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerSettings {
    /// Other names under which requests may reach it.
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may use it.
    pub(crate) origins: Vec<String>,
    /// How much it takes at once.
    pub(crate) bounds: Bounds,
    /// Who is told of each question.
    pub(crate) notify: Option<NotifySettings>,
    /// Who is admitted.
    pub(crate) tokens: Vec<Token>,
    /// The workspaces that tokens name, as they name them, and where they lie.
    pub(crate) workspaces: BTreeMap<String, PathBuf>,
}

/// Reads the section; `known` checks that a tool exists, or returns an error message.
pub(super) fn read(
    mut section: Section<'_>,
    here: &Path,
    known: impl Fn(&str) -> Result<(), String>,
) -> ServerSettings {
    let mut server = ServerSettings::default();
    let texts =
        |list: Option<Vec<_>>| -> Vec<String> { list.into_iter().flatten().map(|(text, _)| text).collect() };
    server.hosts = texts(section.strings("hosts"));
    server.origins = texts(section.strings("origins"));
    let bounds = &mut server.bounds;
    for (key, bound) in [
        ("connections", &mut bounds.connections_max),
        ("connections_of_token", &mut bounds.connections_of_token_max),
        ("strangers", &mut bounds.strangers_max),
        ("streams", &mut bounds.streams_max),
        ("sessions", &mut bounds.sessions_max),
        ("questions", &mut bounds.questions_max),
        ("turns_open", &mut bounds.turns_open_max),
        ("turns_kept", &mut bounds.turns_kept_max),
    ] {
        if let Some(count) = section.count(key) {
            *bound = count.get();
        }
    }
    for (key, bound) in [
        ("body", &mut bounds.body_bytes_max),
        ("bodies", &mut bounds.bodies_bytes_max),
        ("results", &mut bounds.results_bytes_max),
    ] {
        if let Some(bytes) = section.size(key) {
            *bound = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
    }
    if let Some(within) = section.duration("idle_timeout") {
        bounds.idle_timeout = within;
    }
    server.notify = section.placed_section("notify").and_then(|section| notify::read(section, here));
    let mut tokens = section.section("tokens");
    for (name, at, inner) in tokens.sections() {
        if let Some(token) = token((&name, &at), inner, here, &mut server.workspaces, &known) {
            server.tokens.push(token);
        }
    }
    tokens.finish();
    section.finish();
    server
}

/// Registers the secrets of the section with the redactor.
pub(super) fn redact_secrets(server: &ServerSettings, redactor: Redactor) -> Redactor {
    server.notify.as_ref().map_or(redactor.clone(), |notify| notify.redact(redactor))
}

fn token(
    (name, at): (&str, &Range<usize>),
    mut section: Section<'_>,
    here: &Path,
    workspaces: &mut BTreeMap<String, PathBuf>,
    known: impl Fn(&str) -> Result<(), String>,
) -> Option<Token> {
    let hash = match section.string("sha256") {
        Some((text, at)) => {
            let read = text.parse::<SecretHash>().map_err(|error| error.to_string());
            section.parsed("sha256", &at, read)
        }
        None => {
            let prefix = section.prefix();
            section.report(
                at,
                format!("{prefix}sha256 is missing: 'toolyard token new {name}' makes a token and prints it"),
            );
            None
        }
    };
    let mut scopes = Vec::new();
    for (word, at) in section.strings("scopes").unwrap_or_default() {
        scopes.extend(section.parsed(
            "scopes",
            &at,
            word.parse::<Scope>().map_err(|error| error.to_string()),
        ));
    }
    let self_approve = section.boolean("self_approve").unwrap_or(false);
    let roles: Vec<String> = section.strings("roles").into_iter().flatten().map(|(role, _)| role).collect();
    let mut own = Vec::new();
    for (path, _) in section.strings("workspaces").into_iter().flatten() {
        let root = if path.starts_with('~') { PathBuf::from(&path) } else { here.join(&path) };
        workspaces.insert(path.clone(), root);
        own.push(path);
    }
    let (capabilities, texts) = policy::capabilities(section.section("capabilities"), known);
    let budget = budget::read(section.section("budget"));
    if section.is_valid()
        && scopes.contains(&Scope::Call)
        && scopes.contains(&Scope::Approve)
        && !self_approve
    {
        section.report(at, toolyard_server::SelfApproval(name.into()).to_string());
    }
    section.finish();
    let mut token = Token::new(name, hash?, scopes).roles(roles).workspaces(own).budgets(budget.into());
    if bounds_any(&texts) {
        token = token.capabilities(capabilities);
    }
    Some(if self_approve { token.self_approve() } else { token })
}

fn bounds_any(texts: &CapabilityTexts) -> bool {
    texts.tools.is_some() || texts.fs.is_some() || texts.net.is_some()
}
