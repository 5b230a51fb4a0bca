//! From the kernel to a machine that programs can run in.

use crate::port::Port;
use rustix::{
    fs::Mode,
    mount::{MountFlags, mount},
    system::finit_module,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use toolyard_vm::protocol::{BUSYBOX, MODULES};

/// The flag of a module that the kernel has to unpack.
const COMPRESSED: i32 = 4;

/// Mounts, loads modules, and opens the port to the host.
pub(crate) fn boot() -> io::Result<Port> {
    for (source, target, mode) in
        [("proc", "/proc", 0o555), ("devtmpfs", "/dev", 0o755), ("tmpfs", "/tmp", 0o777)]
    {
        make_directory(target, mode)?;
        mount(source, target, source, MountFlags::NOSUID, None)
            .map_err(|error| named(target, &error.into()))?;
    }
    rustix::fs::chmod("/tmp", Mode::from_raw_mode(0o1777))?;
    for module in in_order(Path::new(MODULES))? {
        load(&module).map_err(|error| named(&module.display().to_string(), &error))?;
    }
    busybox()?;
    Port::open()
}

fn make_directory(path: &str, mode: u32) -> io::Result<()> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(named(path, &error.into())),
    }
}

/// The modules, in the order of their names.
fn in_order(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut modules: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    modules.sort();
    Ok(modules)
}

fn load(module: &Path) -> io::Result<()> {
    let flags = if module.extension().is_some_and(|ending| ending == "ko") { 0 } else { COMPRESSED };
    match finit_module(File::open(module)?, c"", flags) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives the programs of busybox their names, wherever the host has such programs.
fn busybox() -> io::Result<()> {
    for directory in ["/bin", "/usr/bin"] {
        let mut install = Command::new(BUSYBOX);
        install.args(["--install", "-s", directory]).env_clear();
        install.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    }
    Ok(())
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
