//! The parts of a system that programs need, and that say nothing about its users.

/// The directories of programs and libraries.
pub const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The files and directories of `/etc` that programs read. Never those with secrets of users or of the machine.
pub const SYSTEM_FILES: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/java-17-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Files of `/etc` that are made up, because those of the system name its users and machines.
pub(super) const MADE_UP: &[(&str, &str)] = &[
    ("etc/group", "toolyard:x:{gid}:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("etc/passwd", "toolyard:x:{uid}:{gid}::/tmp:/bin/sh\n"),
];
