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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::accel::Accel;

    fn parts(accel: Accel) -> Parts {
        Parts {
            qemu: "/usr/bin/qemu-system-x86_64".into(),
            kernel: "/boot/vmlinuz".into(),
            modules: "/lib/modules/6".into(),
            agent: "/agent".into(),
            busybox: "/bin/busybox".into(),
            add: Vec::new(),
            accel,
        }
    }

    fn told(accel: Accel, memory_mib: u32) -> Vec<String> {
        let all = arguments(&parts(accel), Path::new("initramfs"), memory_mib);
        all.into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    /// The values of an argument.
    fn values<'a>(all: &'a [String], name: &str) -> Vec<&'a str> {
        let pairs = all.windows(2).filter(|pair| pair[0] == name);
        pairs.map(|pair| pair[1].as_str()).collect()
    }

    /// SB-4: QEMU confines itself, and a machine has one serial port and no network, disk or other device.
    #[test]
    fn a_machine_has_one_port_and_nothing_else() {
        let all = told(Accel::Tcg, 128);
        let denied = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
        assert_eq!(values(&all, "-sandbox"), [denied]);
        for plain in ["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"] {
            assert!(all.iter().any(|argument| argument == plain), "{plain}");
        }
        let devices = ["virtio-serial-pci", "virtserialport,chardev=port,name=toolyard"];
        assert_eq!(values(&all, "-device"), devices);
        let more =
            ["net", "nic", "drive", "hd", "cdrom", "blockdev", "fsdev", "virtfs", "usb", "vga", "display"];
        let is_more = |argument: &&String| more.iter().any(|more| argument.starts_with(&format!("-{more}")));
        assert_eq!(all.iter().find(is_more), None);
        assert_eq!((values(&all, "-smp"), values(&all, "-m")), (vec!["1"], vec!["128M"]));
    }

    #[test]
    fn the_accelerator_and_its_processor_go_together() {
        for (accel, [name, cpu]) in [(Accel::Tcg, ["tcg", "max"]), (Accel::Kvm, ["kvm", "host"])] {
            let all = told(accel, 128);
            assert_eq!((values(&all, "-accel"), values(&all, "-cpu")), (vec![name], vec![cpu]));
        }
    }

    /// A comma in a path ends no value.
    #[test]
    fn a_comma_in_a_path_is_doubled() {
        let all = sockets(Path::new("/run/a,b/port"), Path::new("/run/monitor"));
        assert!(all.contains(&"socket,id=port,server=off,path=/run/a,,b/port".into()), "{all:?}");
    }
}
