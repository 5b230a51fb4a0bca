//! Modules that do what the scripts do.

use toolyard_test_modules::{command, print};

/// Prints more than is kept, from its start to its end.
pub(super) fn floods() -> String {
    let body = "
    (call $print (i32.const 1024) (i32.const 6))
    (loop $more
      (call $print (i32.const 1030) (i32.const 16))
      (local.set $lines (i32.add (local.get $lines) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $lines) (i32.const 6000))))
    (call $print (i32.const 1046) (i32.const 4))";
    let module = command("start\n0123456789abcde\nend\n", body);
    let print = "(func $print (param i32 i32)
    (i32.store (i32.const 0) (local.get 0)) (i32.store (i32.const 4) (local.get 1))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export \"_start\") (local $lines i32)";
    module.replace("(func (export \"_start\")", print)
}

/// Prints a line and goes on for ever.
pub(super) fn goes_on() -> String {
    print(1, "so far\n", 0).replace("(call $exit (i32.const 0))", "(loop $more (br $more))")
}

/// Prints a line to standard output, then one to standard error, and goes on for ever.
pub(super) fn says_and_goes_on() -> String {
    let body = "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 7))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 0) (i32.const 1031)) (i32.store (i32.const 4) (i32.const 6))
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop $more (br $more))";
    command("so far\nready\n", body)
}

/// Prints a line and divides by zero.
pub(super) fn traps() -> String {
    let divides = "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 2048))))";
    print(1, "so far\n", 0).replace("(call $exit (i32.const 0))", divides)
}

/// Prints these to standard error and standard output, and exits with this code.
pub(super) fn prints_both(errors: &str, output: &str, code: u32) -> String {
    let (first, second) = (errors.len(), output.len());
    let body = format!(
        "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const {first}))
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 0) (i32.const {})) (i32.store (i32.const 4) (i32.const {second}))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const {code}))",
        1024 + first
    );
    command(&format!("{errors}{output}"), &body)
}
