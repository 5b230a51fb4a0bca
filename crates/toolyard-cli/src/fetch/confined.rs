//! A confined server that runs from what was fetched for it.

use super::{install, store::Store, wanted::Wanted};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use toolyard_mcp::ServerConfig;

/// What the command of a server downloads, if it is confined and downloads.
pub(super) fn wanted(server: &ServerConfig) -> Option<Result<Wanted, String>> {
    server.confinement()?;
    let here = server.directory().map(Path::to_owned).or_else(|| env::current_dir().ok())?;
    Wanted::of(server.program(), server.arguments(), &here)
}

/// The server as it is started in a sandbox, for a workspace at `root`: one that would download at each start runs from
/// what was fetched, or says that nothing was (SB-5). `system` is what it reaches of the system.
pub(crate) fn fetched(server: ServerConfig, root: &Path, system: &[PathBuf]) -> ServerConfig {
    let Some(wanted) = wanted(&server) else { return server };
    match from_cache(&server, wanted, root, system) {
        Ok(server) => server,
        Err(why) => server.unavailable(why),
    }
}

fn from_cache(
    server: &ServerConfig,
    wanted: Result<Wanted, String>,
    root: &Path,
    system: &[PathBuf],
) -> Result<ServerConfig, String> {
    let Wanted { source, args } = wanted?;
    let store = Store::of(root)?;
    // It exists from here on, so that a server that may write the directory around it cannot make one.
    store.make().map_err(|error| format!("its cache cannot be used: {error}"))?;
    let fetched = store.find(&source).ok_or_else(|| {
        let (name, command) = (server.name(), server.program().display());
        format!("'{command}' downloads, which a confined server cannot: run 'toolyard mcp fetch {name}' once before")
    })?;
    let confinement = server.confinement().cloned().unwrap_or_default();
    let confinement = confinement.read(&fetched.directory).keep([store.path()]);
    let interpreters = interpreters(&fetched.directory).into_iter();
    let interpreters = interpreters.filter(|place| !system.iter().any(|system| place.starts_with(system)));
    let confinement = interpreters.fold(confinement, |confinement, place| confinement.read(place));
    Ok(server.clone().started_by(&fetched.program).args(args).confined(confinement))
}

/// Where the interpreter of what was fetched is installed: both where it is said to be and where links lead from there.
fn interpreters(directory: &Path) -> Vec<PathBuf> {
    let venv = directory.join("venv/bin/python");
    let named = match fs::read_link(&venv) {
        // An environment names the interpreter that it was made from, or another name beside it.
        Ok(link) if link.is_absolute() => Some(link),
        Ok(_) => None,
        Err(_) => install::found("node"),
    };
    let resolved = match venv.exists() {
        true => venv.canonicalize().ok(),
        false => named.as_ref().and_then(|node| node.canonicalize().ok()),
    };
    let mut places: Vec<PathBuf> =
        named.into_iter().chain(resolved).filter_map(|program| installation(&program)).collect();
    places.dedup();
    places
}

/// What belongs to a program `…/bin/NAME`: all of `…`, unless that is much more, such as a home.
fn installation(program: &Path) -> Option<PathBuf> {
    let bin = program.parent()?;
    let whole = bin.parent()?;
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_more = whole.parent().is_none() || home.is_some_and(|home| home.starts_with(whole));
    Some(if is_more { program.to_owned() } else { whole.to_owned() })
}
