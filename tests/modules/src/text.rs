//! Modules as text.

/// Prints what it reads.
pub const ECHO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $more
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (i32.const 32768))
      (if (i32.eqz (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (then (if (i32.load (i32.const 8)) (then
          (i32.store (i32.const 4) (i32.load (i32.const 8)))
          (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
          (br $more))))))))"#;

/// Computes without end, in a loop that does nothing.
pub const SPIN: &str =
    r#"(module (memory (export "memory") 1) (func (export "_start") (loop $more (br $more))))"#;

/// Takes memory until there is none, and traps.
pub const HOG: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable))"#;

/// Has 16 MiB of memory from its beginning.
pub const LARGE: &str = r#"(module (memory (export "memory") 256) (func (export "_start")))"#;

/// Prints without end, whatever becomes of it.
pub const FLOOD: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 32768))
    (loop $more
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br $more))))"#;

/// Opens its first directory again and again, and closes nothing.
pub const DESCRIPTORS: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) ".")
  (func (export "_start")
    (loop $more
      (drop (call $open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 0)
                        (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8)))
      (br $more))))"#;

/// Calls itself without end.
pub const RECURSE: &str = r#"(module
  (memory (export "memory") 1)
  (func $again (param i32) (result i32) (i32.add (i32.const 1) (call $again (local.get 0))))
  (func (export "_start") (drop (call $again (i32.const 0)))))"#;

/// Divides by zero.
pub const DIVIDE: &str = r#"(module
  (memory (export "memory") 1)
  (func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func (export "_start") (drop (call $divide (i32.const 0)))))"#;

/// Sleeps for a year, in a function of the host.
pub const SLEEP: &str = r#"(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1)) ;; the monotonic clock
    (i64.store (i32.const 24) (i64.const 31536000000000000))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"#;

/// Accepts a connection on its first directory; exits with what that gives.
pub const SOCKET: &str = r#"(module
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (call $exit (call $accept (i32.const 3) (i32.const 0) (i32.const 0)))))"#;

/// Exits with 0 if the clocks run and random numbers are not zero.
pub const CLOCK: &str = r#"(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $time (i32.const 0) (i64.const 1) (i32.const 0)))
    (drop (call $time (i32.const 1) (i64.const 1) (i32.const 8)))
    (drop (call $random (i32.const 16) (i32.const 8)))
    (call $exit (i32.or (i64.eqz (i64.load (i32.const 0))) (i64.eqz (i64.load (i32.const 16)))))))"#;

/// Prints its variables, each with a NUL after it.
pub const ENVIRONMENT: &str = r#"(module
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $sizes (i32.const 8) (i32.const 4)))
    (drop (call $get (i32.const 1024) (i32.const 8192)))
    (i32.store (i32.const 0) (i32.const 8192))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Prints its arguments, each with a NUL after it.
pub const ARGUMENTS: &str = r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $sizes (i32.const 8) (i32.const 4)))
    (drop (call $get (i32.const 1024) (i32.const 8192)))
    (i32.store (i32.const 0) (i32.const 8192))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// A module with this body of `_start`, which may use `$write` and `$exit`, and has this text at 1024.
pub fn command(text: &str, body: &str) -> String {
    let data: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 1024) "{data}")
  (func (export "_start")
    {body}))"#
    )
}

/// A module that exits with this code.
pub fn exit(code: u32) -> String {
    command("", &format!("(call $exit (i32.const {code}))"))
}

/// A module that prints this text, to standard output (1) or standard error (2), and exits with this code.
pub fn print(to: u32, text: &str, code: u32) -> String {
    let length = text.len();
    let body = format!(
        "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const {length}))
    (drop (call $write (i32.const {to}) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const {code}))"
    );
    command(text, &body)
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading and writing; made if it does not exist.
    Create,
    /// For writing; it has to exist.
    Write,
}

/// A module that opens this path below its first directory, following links, and exits with what that gives: 0, or an
/// error number of preview 1. What it opened for writing gets an `x`.
pub fn open(path: &str, access: Access) -> String {
    let length = path.len();
    let (flags, rights) = match access {
        Access::Read => (0, 2),
        Access::Create => (1, 2 | 64),
        Access::Write => (0, 64),
    };
    let writes = if access == Access::Read { 0 } else { 1 };
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "x")
  (data (i32.const 1024) "{path}")
  (func (export "_start") (local $error i32)
    (local.set $error
      (call $open (i32.const 3) (i32.const 1) (i32.const 1024) (i32.const {length}) (i32.const {flags})
                  (i64.const {rights}) (i64.const {rights}) (i32.const 0) (i32.const 8)))
    (if (i32.and (i32.eqz (local.get $error)) (i32.const {writes})) (then
      (i32.store (i32.const 0) (i32.const 512))
      (i32.store (i32.const 4) (i32.const 1))
      (local.set $error (call $write (i32.load (i32.const 8)) (i32.const 0) (i32.const 1) (i32.const 16)))))
    (call $exit (local.get $error))))"#
    )
}
