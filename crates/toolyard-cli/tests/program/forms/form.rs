//! Where a program runs, and how it is one there.

use super::{cases::Case, service};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Host,
    Process,
    Landlock,
    Remote,
    #[cfg(feature = "wasm")]
    Wasm,
    #[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
    MicroVm,
}

impl Form {
    /// The sandbox.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Process => "process",
            Self::Landlock => "landlock",
            Self::Remote => "remote",
            #[cfg(feature = "wasm")]
            Self::Wasm => "wasm",
            #[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
            Self::MicroVm => "micro_vm",
        }
    }

    /// The keys of the tool that make it this program, with a variable of its own.
    pub(super) fn program(self, case: &Case, place: &Path) -> String {
        #[cfg(feature = "wasm")]
        if self == Self::Wasm {
            let module = toolyard_test_modules::assemble(&(case.module)());
            fs::write(place.join("tool.wasm"), module).unwrap();
            return "wasm = \"tool.wasm\"\nenv = { OWN = \"said\" }".to_owned();
        }
        if self == Self::Remote {
            let url = service::start(case.answer);
            return format!("url = \"{url}\"\nallow_private = true\nheaders = {{ Own = \"said\" }}");
        }
        fs::write(place.join("tool.sh"), case.script).unwrap();
        "command = [\"/bin/sh\", \"./tool.sh\"]\nenv = { OWN = \"said\" }".to_owned()
    }

    /// What its sandbox needs to be told.
    pub(super) fn settings(self) -> String {
        #[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
        if self == Self::MicroVm {
            return format!("[sandbox.micro_vm]\n{}", crate::machines::parts());
        }
        String::new()
    }
}

/// Whether this machine has no virtual machines; it must where that is said.
#[cfg(all(feature = "micro-vm", target_arch = "x86_64"))]
pub(super) fn has_no_machines() -> bool {
    let file = crate::place::dir("forms-machines").join("toolyard.toml");
    fs::create_dir(file.with_file_name("work")).unwrap();
    fs::write(&file, format!("[workspace]\nroot = \"work\"\n{}", Form::MicroVm.settings())).unwrap();
    let mut command =
        crate::child::program(&["sandbox", "setup", "micro-vm", "--config", file.to_str().unwrap()]);
    command.env("XDG_CACHE_HOME", cache());
    crate::machines::is_missing(&crate::child::fed(command, ""))
}

/// Where compiled modules and snapshots of machines are kept from one case to the next.
pub(super) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-of-program")
}
