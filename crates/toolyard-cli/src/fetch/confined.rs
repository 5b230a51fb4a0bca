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

/// The interpreter of what was fetched, and what belongs to it: both where it is said to be and where links lead from
/// there.
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
        named.into_iter().chain(resolved).flat_map(|program| installation(&program)).collect();
    places.sort();
    places.dedup();
    places
}

/// What belongs to a program `…/bin/NAME`: what lies beside it, for the links among those, and the libraries in `…`. Not
/// all of `…`, which may be much more: it is `~/.local` where that holds the programs of a user.
fn installation(program: &Path) -> Vec<PathBuf> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"));
    let Some((bin, whole)) = bin.and_then(|bin| Some((bin, bin.parent()?))) else {
        return vec![program.to_owned()];
    };
    let libraries = ["lib", "lib64"].map(|name| whole.join(name)).into_iter().filter(|path| path.is_dir());
    [bin.to_owned()].into_iter().chain(libraries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-5: a server reaches its interpreter and the libraries of that, and not what lies beside them.
    #[test]
    fn an_interpreter_is_granted_without_its_neighbours() {
        let place = tempfile::tempdir().unwrap();
        for name in ["bin", "lib", "share"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let [bin, lib] = ["bin", "lib"].map(|name| place.path().join(name));
        assert_eq!(installation(&bin.join("python3")), [bin, lib]);
        let alone = place.path().join("node");
        assert_eq!(installation(&alone), [alone]);
    }
}
