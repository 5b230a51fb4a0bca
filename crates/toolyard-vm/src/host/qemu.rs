//! What QEMU is told.

use super::parts::Parts;
use std::{ffi::OsString, path::Path};

/// What every machine is, whatever is in it: no device but a serial port, and of the host no file, process or user.
const ALL: [&str; 10] = [
    "-nodefaults",
    "-no-user-config",
    "-nographic",
    "-no-reboot",
    "-machine",
    "pc",
    "-smp",
    "1",
    "-sandbox",
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
];

/// What the kernel is told. A panic ends the machine.
const KERNEL_LINE: &str = "quiet panic=-1";

/// The name of the port, inside.
const PORT: &str = "toolyard";

/// The arguments that a snapshot depends on.
pub(super) fn arguments(parts: &Parts, initramfs: &Path, memory_mib: u32) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ALL.iter().map(OsString::from).collect();
    let mut add = |name: &str, value: OsString| arguments.extend([OsString::from(name), value]);
    add("-accel", parts.accel.as_str().into());
    add("-cpu", parts.accel.cpu().into());
    add("-m", format!("{memory_mib}M").into());
    add("-kernel", parts.kernel.clone().into());
    add("-initrd", initramfs.into());
    add("-append", KERNEL_LINE.into());
    add("-device", "virtio-serial-pci".into());
    add("-device", format!("virtserialport,chardev=port,name={PORT}").into());
    arguments
}

/// The arguments for the sockets that QEMU connects to.
pub(super) fn sockets(port: &Path, monitor: &Path) -> Vec<OsString> {
    let socket = |name: &str, path: &Path| {
        let mut text = OsString::from(format!("socket,id={name},server=off,path="));
        // A comma ends a value unless it is doubled.
        text.push(path.to_string_lossy().replace(',', ",,"));
        text
    };
    vec![
        "-chardev".into(),
        socket("port", port),
        "-chardev".into(),
        socket("monitor", monitor),
        "-mon".into(),
        "chardev=monitor,mode=control".into(),
    ]
}
