;; The same as count.sh, as a command of WASI preview 1: {"path":"…"} or {"connect":"…"} on standard input.
;; What it reads is at 4096; the pair of address and length that reads and writes take is at 0, what they give at 8.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 32) "{\"words\":")
  (data (i32.const 41) "}")
  (data (i32.const 64) "no such file in its directories\n")
  (data (i32.const 128) "there is no call that makes one\n")

  (func $say (param $to i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (local.get $to) (i32.const 0) (i32.const 1) (i32.const 8))))

  (func $fail (param $why i32)
    (call $say (i32.const 2) (local.get $why) (i32.const 32))
    (call $exit (i32.const 1)))

  (func $get (param $from i32) (result i32)
    (i32.store (i32.const 0) (i32.const 4096))
    (i32.store (i32.const 4) (i32.const 61440))
    (drop (call $read (local.get $from) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))

  (func $digits (param $number i32)
    (if (i32.ge_u (local.get $number) (i32.const 10))
      (then (call $digits (i32.div_u (local.get $number) (i32.const 10)))))
    (i32.store8 (i32.const 48) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
    (call $say (i32.const 1) (i32.const 48) (i32.const 1)))

  (func $count (param $end i32) (result i32) (local $at i32) (local $is_word i32) (local $words i32)
    (local.set $at (i32.const 4096))
    (block $done (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (if (i32.gt_u (i32.load8_u (local.get $at)) (i32.const 32))
        (then
          (local.set $words (i32.add (local.get $words) (i32.eqz (local.get $is_word))))
          (local.set $is_word (i32.const 1)))
        (else (local.set $is_word (i32.const 0))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $more)))
    (local.get $words))

  (func (export "_start") (local $length i32)
    (local.set $length (call $get (i32.const 0)))
    (if (i32.eq (i32.load8_u (i32.const 4098)) (i32.const 0x63)) (then ;; "c": connect
      ;; All that preview 1 has of sockets takes one that it was given; 3 is its directory.
      (if (call $accept (i32.const 3) (i32.const 0) (i32.const 8)) (then (call $fail (i32.const 128))))))
    ;; The path stands between {"path":" and "}.
    (if (call $open (i32.const 3) (i32.const 1) (i32.const 4105) (i32.sub (local.get $length) (i32.const 11))
                    (i32.const 0) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8))
      (then (call $fail (i32.const 64))))
    (local.set $length (call $get (i32.load (i32.const 8))))
    (call $say (i32.const 1) (i32.const 32) (i32.const 9))
    (call $digits (call $count (i32.add (i32.const 4096) (local.get $length))))
    (call $say (i32.const 1) (i32.const 41) (i32.const 1))))
