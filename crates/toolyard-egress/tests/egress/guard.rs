//! Addresses that may not be dialled, by whatever way they are named.

use crate::server::{Scripted, Server, call_by, reply};
use std::sync::Arc;
use toolyard_core::{Host, Service, ToolErrorKind};
use toolyard_egress::{
    Addresses, CallFailed, Egress, NotPublic, NotSent, RemoteService, Resolver, SetupError,
};

/// What is heard of a service at a name for which this resolver answers.
async fn refused(resolver: Arc<dyn Resolver>, port: u16) -> NotSent {
    let service = Service::new(format!("http://tools.example:{port}/"));
    let called = call_by(&Egress::new().resolver(resolver), &service).await;
    let Err(CallFailed::NotSent(why)) = called else { panic!("{called:?}") };
    why
}

/// SB-10: an address in a URL is judged in every spelling, before anything is dialled.
#[tokio::test]
async fn an_address_is_judged_in_every_spelling() {
    let server = Server::open(|_| reply(200, "x")).await;
    for (host, kind) in [
        ("127.0.0.1", NotPublic::Loopback),
        ("2130706433", NotPublic::Loopback),
        ("0x7f.1", NotPublic::Loopback),
        ("0177.0.0.1", NotPublic::Loopback),
        ("127.1", NotPublic::Loopback),
        ("127.0.0.1.", NotPublic::Loopback),
        ("%31%32%37.0.0.1", NotPublic::Loopback),
        ("１２７.0.0.1", NotPublic::Loopback),
        ("[::1]", NotPublic::Loopback),
        ("[::ffff:127.0.0.1]", NotPublic::Loopback),
        ("[::127.0.0.1]", NotPublic::Mapped),
        ("[64:ff9b::7f00:1]", NotPublic::Translated),
        ("[2002:7f00:1::]", NotPublic::Loopback),
        ("0", NotPublic::Unspecified),
        ("169.254.169.254", NotPublic::LinkLocal),
    ] {
        let service = Service::new(format!("http://{host}:{}/", server.port));
        let error = RemoteService::new(&service, &Egress::new()).unwrap_err();
        let SetupError::Address(NotSent::Refused { why, .. }) = &error else { panic!("{host}: {error}") };
        assert_eq!(*why, kind, "{host}");
        let error = error.tool_error();
        assert!(error.kind() == ToolErrorKind::PermissionDenied && error.has_no_side_effect(), "{host}");
    }
    assert_eq!(server.accepted(), 0);
}

/// SB-10: a name is judged by the addresses that it has when it is dialled.
#[tokio::test]
async fn a_name_is_judged_by_its_addresses() {
    let server = Server::open(|_| reply(200, "x")).await;
    for (address, kind) in [
        ("127.0.0.1", NotPublic::Loopback),
        ("10.0.0.1", NotPublic::Private),
        ("100.64.0.1", NotPublic::Shared),
        ("::ffff:127.0.0.1", NotPublic::Mapped),
        ("fd00::1", NotPublic::UniqueLocal),
    ] {
        let why = refused(Scripted::new(&[&[address]]), server.port).await;
        let to = format!("tools.example:{}", server.port);
        assert_eq!(why, NotSent::Refused { to, why: kind });
        assert!(!why.to_string().contains(address), "{why}");
        let error = CallFailed::NotSent(why).tool_error();
        assert!(error.kind() == ToolErrorKind::PermissionDenied && error.has_no_side_effect());
    }
    // The name of this machine is no way around it, either.
    let service = Service::new(format!("http://localhost:{}/", server.port));
    let called = call_by(&Egress::new(), &service).await;
    assert!(matches!(called, Err(CallFailed::NotSent(NotSent::Refused { .. }))), "{called:?}");
    assert_eq!(server.accepted(), 0);
}

/// SB-10: of the addresses of a name those that may not be dialled are left out; a name that has others the next time
/// is judged again.
#[tokio::test]
async fn a_name_is_judged_each_time() {
    let resolver = Scripted::new(&[&["10.0.0.1", "1.1.1.1", "::1"], &["127.0.0.1"]]);
    let (egress, host) = (Egress::new().resolver(resolver), Host::parse("tools.example").unwrap());
    let addresses = || egress.addresses(&host, 443, Addresses::Public);
    assert_eq!(addresses().await, Ok(vec!["1.1.1.1".parse().unwrap()]));
    assert!(matches!(addresses().await, Err(NotSent::Refused { why: NotPublic::Loopback, .. })));
}

/// SB-10: the address that was judged is the one that is dialled: a name is looked up once for a connection, whatever
/// the resolver would answer next.
#[tokio::test]
async fn what_was_judged_is_dialled() {
    let server = Server::open(|_| reply(200, "x")).await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let egress = Egress::new().resolver(resolver.clone());
    let mut service = Service::new(format!("http://tools.example:{}/", server.port));
    service.allow_private = true;
    call_by(&egress, &service).await.unwrap();
    assert_eq!((server.accepted(), resolver.asked()), (1, 1));
    assert_eq!(server.only().headers["host"], format!("tools.example:{}", server.port));
    // Nobody is at the address that it would have been.
    let called = call_by(&egress, &service).await;
    assert!(matches!(called, Err(CallFailed::NotSent(NotSent::Unreachable { .. }))), "{called:?}");
}

/// SB-10: one of several addresses that answers is enough.
#[tokio::test]
async fn the_first_address_that_answers_is_used() {
    let server = Server::open(|_| reply(200, "x")).await;
    let egress = Egress::new().resolver(Scripted::new(&[&["127.0.0.2", "127.0.0.3", "127.0.0.1"]]));
    let mut service = Service::new(format!("http://tools.example:{}/", server.port));
    service.allow_private = true;
    assert_eq!(call_by(&egress, &service).await.unwrap().status, 200);
}
