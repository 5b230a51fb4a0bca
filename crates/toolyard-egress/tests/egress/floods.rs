//! Services that send more than they should.

use crate::server::{Server, call, reply};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response,
    body::{Bytes, Frame},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};
use toolyard_core::{OutputKind, Service, ToolErrorKind};
use toolyard_egress::CallFailed;
use toolyard_program::Kept;

const MOST: usize = 1000;

fn bounded(server: &Server) -> Service {
    let mut service = server.service();
    service.output_bytes = MOST;
    service
}

/// SB-2: an answer without an end is cut, and what comes after that is not waited for.
#[tokio::test]
async fn an_answer_without_an_end_is_cut() {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let server = Server::open(move |_| {
        let count = count.clone();
        let endless = futures::stream::repeat_with(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Frame::data(Bytes::from_static(&[b'x'; 1 << 16])))
        });
        Response::new(StreamBody::new(endless).boxed_unsync())
    })
    .await;
    let answered = call(&bounded(&server)).await.unwrap();
    assert!(!answered.body.is_whole && answered.body.total > MOST as u64);
    assert!(answered.body.text.starts_with(&"x".repeat(MOST)) && answered.body.text.len() < MOST + 100);
    let error = answered.result(OutputKind::Json, SystemTime::now()).unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::OutputTooLarge);
    // What the connection and its two ends buffer: some MiB at most, wherever this runs.
    assert!(taken.load(Ordering::Relaxed) < 500);
}

/// SB-2: what is announced is known without being read.
#[tokio::test]
async fn the_length_of_a_long_answer_is_told() {
    let server = Server::open(|_| reply(200, vec![b'x'; 3 << 20])).await;
    let answered = call(&bounded(&server)).await.unwrap();
    assert_eq!(answered.body.total, 3 << 20);
    assert!(!answered.body.is_whole);
}

/// SB-2: an answer of just the size that is kept is whole.
#[tokio::test]
async fn an_answer_that_fits_is_whole() {
    let server = Server::open(|_| reply(200, vec![b'x'; MOST])).await;
    assert_eq!(call(&bounded(&server)).await.unwrap().body, Kept::whole("x".repeat(MOST)));
    let server = Server::open(|_| reply(200, "")).await;
    let mut service = server.service();
    service.output_bytes = 0;
    assert_eq!(call(&service).await.unwrap().body, Kept::whole(""));
}

/// SB-2: the head of an answer is bounded, in number and in size.
#[tokio::test]
async fn the_head_of_an_answer_is_bounded() {
    for (count, size) in [(200, 1), (20, 10_000)] {
        let server = Server::open(move |_| {
            let mut answer = reply(200, "x");
            for at in 0..count {
                let name: hyper::header::HeaderName = format!("x-{at}").parse().unwrap();
                answer.headers_mut().insert(name, "x".repeat(size).parse().unwrap());
            }
            answer
        })
        .await;
        let failed = call(&server.service()).await.unwrap_err();
        assert!(matches!(failed, CallFailed::Lost { .. }), "{failed:?}");
    }
}
