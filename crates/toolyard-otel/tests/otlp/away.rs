//! Collectors that are down or do not answer.

use crate::scene::{ENDS, builder, codes, play};
use std::{net::TcpListener, time::Duration};
use toolyard::Engine;
use toolyard_otel::{Settings, SetupError, Telemetry};

/// OB-4, OB-3: a collector that is down costs telemetry but no calls.
#[tokio::test(start_paused = true)]
async fn a_collector_that_is_down() {
    // A port that the system never assigns: one that was free a moment ago might belong to another test by now.
    let telemetry = Telemetry::start(Settings::to("http://127.0.0.1:1")).unwrap();
    let (outcomes, sent) = play(telemetry, builder()).await;
    assert_eq!((codes(&outcomes), sent), (ENDS.to_vec(), false));
}

/// OB-4: a collector that never answers cannot delay a shutdown past its limit. Requests here are practically
/// unbounded, so otherwise the test would hang.
#[tokio::test(start_paused = true)]
async fn a_collector_that_hangs() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = Settings::to(&format!("http://{}", deaf.local_addr().unwrap()));
    let telemetry = Telemetry::start(settings.timeout(Duration::from_secs(24 * 3600))).unwrap();
    let engine: Engine = builder().events(telemetry.sink()).build().await.unwrap();
    let outcome = engine.session("demo").call(toolyard::Call::new("a", "waits", "{}")).await;
    assert!(outcome.success());
    assert!(!telemetry.shutdown(Duration::from_millis(300)));
    drop(deaf);
}

/// OB-4: an address that would need TLS is refused at once, not at the first request.
#[test]
fn addresses_that_are_not_spoken() {
    let error = Telemetry::start(Settings::to("https://collector:4318")).unwrap_err();
    assert!(matches!(error, SetupError::NotHttp { .. }), "{error}");
}
