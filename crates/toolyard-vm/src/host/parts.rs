//! What a machine is made of, and where that is found.

use super::{accel::Accel, elf};
use std::path::{Path, PathBuf};

/// What a machine is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parts {
    /// QEMU for x86_64.
    pub qemu: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The directory with the modules of that kernel.
    pub modules: PathBuf,
    /// The agent, built static.
    pub agent: PathBuf,
    /// A static busybox, whose programs every machine has.
    pub busybox: PathBuf,
    /// Files and directories that every machine has at the same place as the host.
    pub add: Vec<PathBuf>,
    /// What executes its instructions.
    pub accel: Accel,
}

/// What is known of a machine's parts; what is not is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The kernel; else the newest in `/boot`, with `cloud` in its name if there is one.
    pub kernel: Option<PathBuf>,
    /// The directory with its modules; else that in `/lib/modules` which is called as the kernel is.
    pub modules: Option<PathBuf>,
    /// The agent; else what is called so beside the running program.
    pub agent: Option<PathBuf>,
    /// What is added.
    pub add: Vec<PathBuf>,
    /// What executes its instructions.
    pub accel: Accel,
}

/// A part that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} ({how})")]
pub struct Missing {
    /// What.
    pub what: String,
    /// How to get it.
    pub how: &'static str,
}

const QEMU: &str = "apt-get install --no-install-recommends qemu-system-x86";
const BUSYBOX: &str = "apt-get install busybox-static";
const KERNEL: &str =
    "apt-get install linux-image-cloud-amd64, or unpack that package and name its vmlinuz and its modules";
const AGENT: &str = "cargo build -p toolyard-vm-agent --release --target x86_64-unknown-linux-gnu, with \
                     RUSTFLAGS=\"-C target-feature=+crt-static\"";

impl Wanted {
    /// Finds the parts.
    ///
    /// # Errors
    /// All that are missing.
    pub fn find(self) -> Result<Parts, Vec<Missing>> {
        let mut missing = Vec::new();
        let qemu =
            program("qemu-system-x86_64").ok_or_else(|| absent("there is no qemu-system-x86_64", QEMU));
        let busybox = program("busybox").ok_or_else(|| absent("there is no busybox", BUSYBOX));
        let busybox = busybox.and_then(|busybox| unlinked(busybox, "busybox", BUSYBOX));
        let kernel = match self.kernel {
            Some(kernel) => exists(kernel, "kernel", KERNEL),
            None => newest(Path::new("/boot")).ok_or_else(|| absent("there is no kernel in /boot", KERNEL)),
        };
        let modules = match (self.modules, &kernel) {
            (Some(modules), _) => exists(modules, "directory of modules", KERNEL),
            (None, Ok(kernel)) => exists(modules_of(kernel), "directory of modules", KERNEL),
            // One complaint is enough.
            (None, Err(error)) => Err(error.clone()),
        };
        let agent = exists(self.agent.unwrap_or_else(agent_beside), "agent", AGENT);
        let agent = agent.and_then(|agent| unlinked(agent, "agent", AGENT));
        let mut part = |found: Result<PathBuf, Missing>| {
            found.unwrap_or_else(|error| {
                if !missing.contains(&error) {
                    missing.push(error);
                }
                PathBuf::new()
            })
        };
        let parts = Parts {
            qemu: part(qemu),
            kernel: part(kernel),
            modules: part(modules),
            agent: part(agent),
            busybox: part(busybox),
            add: self.add,
            accel: self.accel,
        };
        if missing.is_empty() { Ok(parts) } else { Err(missing) }
    }
}

fn absent(what: &str, how: &'static str) -> Missing {
    Missing { what: what.to_owned(), how }
}

fn exists(path: PathBuf, what: &str, how: &'static str) -> Result<PathBuf, Missing> {
    match path.exists() {
        true => Ok(path),
        false => Err(absent(&format!("there is no {what} '{}'", path.display()), how)),
    }
}

/// A machine has no loader and no libraries.
fn unlinked(path: PathBuf, what: &str, how: &'static str) -> Result<PathBuf, Missing> {
    match elf::is_static(&path) {
        true => Ok(path),
        false => Err(absent(&format!("the {what} '{}' is no static program", path.display()), how)),
    }
}

/// A program of the system, whatever `PATH` says.
fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"];
    places.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

fn agent_beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name("toolyard-vm-agent")
}

/// The newest kernel by its name, of those for clouds if there are any: they have what virtual machines need, and no more.
fn newest(boot: &Path) -> Option<PathBuf> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kernels = boot.read_dir().ok()?.flatten().map(|entry| entry.path());
    let kernels = kernels.filter(|path| name(path).starts_with("vmlinuz-"));
    kernels.max_by_key(|path| (name(path).contains("cloud"), numbers(&name(path))))
}

/// The numbers in a name, so that 6.10 comes after 6.9.
fn numbers(name: &str) -> Vec<u64> {
    let parts = name.split(|char: char| !char.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn modules_of(kernel: &Path) -> PathBuf {
    let name = kernel.file_name().unwrap_or_default().to_string_lossy();
    Path::new("/lib/modules").join(name.trim_start_matches("vmlinuz-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_for_clouds_is_taken() {
        let boot = tempfile::tempdir().unwrap();
        for name in
            ["vmlinuz-7.1.0-1-amd64", "vmlinuz-6.9.0-1-cloud-amd64", "vmlinuz-6.10.0-1-cloud-amd64", "config"]
        {
            std::fs::write(boot.path().join(name), "").unwrap();
        }
        let kernel = newest(boot.path()).unwrap();
        assert_eq!(kernel, boot.path().join("vmlinuz-6.10.0-1-cloud-amd64"));
        assert_eq!(modules_of(&kernel), Path::new("/lib/modules/6.10.0-1-cloud-amd64"));
    }

    /// SB-4: all that is missing is named at once, each with how to get it.
    #[test]
    fn what_is_missing_is_named_with_how_to_get_it() {
        let nowhere = |name: &str| Some(PathBuf::from("/no/such").join(name));
        let wanted = Wanted {
            kernel: nowhere("vmlinuz"),
            modules: nowhere("modules"),
            agent: nowhere("agent"),
            ..Wanted::default()
        };
        let missing = wanted.find().unwrap_err();
        let told: Vec<String> = missing.iter().map(Missing::to_string).collect();
        assert!(
            told.iter().any(|what| what.starts_with("there is no kernel '/no/such/vmlinuz' (apt-get")),
            "{told:?}"
        );
        assert!(
            told.iter().any(|what| what.starts_with("there is no agent '/no/such/agent' (cargo")),
            "{told:?}"
        );
    }
}
