//! Reads the configuration of `toolyard serve` again (HT-11).
//!
//! ```text
//!   file ─► Config ─┬─ invalid ─────────────────────────► nothing changes
//!                   └─ compared with what is in force ─┬─ pools, policy, tokens: changed
//!                                                      └─ anything else: named, until a restart
//! ```

use crate::{
    config::{Config, ConfigErrors, Setting, Written},
    setup::writable_program,
};
use parking_lot::Mutex;
use std::path::PathBuf;
use tokio::task::spawn_blocking;
use toolyard::{Engine, PolicyRules, ToolClass, async_trait};
use toolyard_server::{ConfigFault, Reload, ReloadError, Reloaded, Server};

/// The configuration that is served, and where it is read again.
pub(crate) struct Reloading {
    /// The file that was named.
    pub(crate) named: Option<PathBuf>,
    /// The workspace's root, with links resolved.
    pub(crate) root: Option<PathBuf>,
    /// What the program was started with.
    pub(crate) started: Config,
    /// What is in force by now.
    pub(crate) in_force: Mutex<Written>,
    pub(crate) engine: Engine,
    /// Whether calls need no token, so that there need not be any.
    pub(crate) open_call: bool,
}

/// What is changed by a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changes {
    Pool(ToolClass),
    Policy,
    Tokens,
    /// Nothing, before a restart.
    Nothing,
}

#[async_trait]
impl Reload for Reloading {
    async fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError> {
        let next = self.read().await?;
        let before = self.in_force.lock().clone();
        let settings = before.differences(&next.written);
        let (settings, mut needs_restart): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(|setting| self.changes(setting, &next) != Changes::Nothing);
        needs_restart.extend(self.closed_workspaces(&next));
        self.apply(&settings, &next, server).await?;
        let mut in_force = self.in_force.lock();
        settings.iter().for_each(|setting| in_force.take(setting, &next.written));
        let names = |settings: &[Setting]| settings.iter().map(ToString::to_string).collect();
        Ok(Reloaded { changed: names(&settings), needs_restart: names(&needs_restart) })
    }
}

impl Reloading {
    async fn read(&self) -> Result<Config, ReloadError> {
        let (named, root) = (self.named.clone(), self.root.clone());
        let reading = spawn_blocking(move || {
            let config = Config::load(named.as_deref()).map_err(|errors| faults(&errors))?;
            match writable_program(&config, root.as_deref()) {
                Some(detail) => Err(ReloadError::Invalid(vec![ConfigFault { line: None, detail }])),
                None => Ok(config),
            }
        });
        reading.await.unwrap_or(Err(ReloadError::Stopping))
    }

    fn changes(&self, setting: &Setting, next: &Config) -> Changes {
        match setting.path().as_slice() {
            ["pools", "read"] => Changes::Pool(ToolClass::Read),
            ["pools", "concurrent"] => Changes::Pool(ToolClass::Concurrent),
            ["policy", part] if *part != "capabilities" => Changes::Policy,
            ["server", "tokens", _] if self.keeps_its_kind(next) => Changes::Tokens,
            _ => Changes::Nothing,
        }
    }

    /// Whether there are tokens before and after. Where none is configured, the program has made some, and a page.
    fn keeps_its_kind(&self, next: &Config) -> bool {
        let has_now =
            self.in_force.lock().table(&["server", "tokens"]).is_some_and(|tokens| !tokens.is_empty());
        self.open_call || (has_now && !next.server.tokens.is_empty())
    }

    /// The workspaces of tokens that were not opened when the program was started.
    fn closed_workspaces(&self, next: &Config) -> Vec<Setting> {
        let is_open = |path: &str| self.started.server.workspaces.contains_key(path);
        let tokens = next.written.table(&["server", "tokens"]);
        let closed = tokens.into_iter().flatten().filter(|(_, token)| {
            let paths = token.get("workspaces").and_then(|paths| paths.as_array());
            paths.into_iter().flatten().filter_map(|path| path.as_str()).any(|path| !is_open(path))
        });
        closed.map(|(name, _)| Setting::of(["server", "tokens", name, "workspaces"])).collect()
    }

    /// Changes what these settings change. Only the first step can fail, if the engine has stopped.
    async fn apply(&self, settings: &[Setting], next: &Config, server: &Server) -> Result<(), ReloadError> {
        let all: Vec<Changes> = settings.iter().map(|setting| self.changes(setting, next)).collect();
        for changes in &all {
            let Changes::Pool(class) = *changes else { continue };
            let width = if class == ToolClass::Read { next.pools.read } else { next.pools.concurrent };
            self.engine.resize(class, width).await.map_err(|_| ReloadError::Stopping)?;
        }
        if all.contains(&Changes::Tokens) {
            server.set_tokens(next.server.tokens.clone())?;
        }
        if all.contains(&Changes::Policy) {
            self.engine.set_policy(self.rules(next));
        }
        Ok(())
    }

    /// The rules, with the shell where it was when the program was started.
    fn rules(&self, next: &Config) -> PolicyRules {
        self.started.with_shell(next.policy.as_written.clone())
    }
}

fn faults(errors: &ConfigErrors) -> ReloadError {
    let lines = errors.errors.iter().map(|error| error.line).chain(std::iter::repeat(None));
    let fault = |(detail, line)| ConfigFault { line, detail };
    ReloadError::Invalid(errors.lines().zip(lines).map(fault).collect())
}
