//! The least of a server: it reads a request whole, answers it, and closes the connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
};

/// How many words it counts, whatever it is sent.
pub(crate) const WORDS: u32 = 8;

/// Starts it on a thread of its own, for as long as this process lives. Returns its port.
///
/// # Errors
/// There is no port.
pub(crate) fn start() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // Whoever hangs up needs no answer.
            let _ = answer(&stream);
        }
    });
    Ok(port)
}

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut line, mut length) = (BufReader::new(stream), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let body = format!("{{\"words\":{WORDS}}}");
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes())
}
