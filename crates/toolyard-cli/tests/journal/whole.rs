//! `verify`.

use crate::scene::Scene;
use std::{fs, io::Write};
use toolyard::Call;

/// JR-12, JR-14: a whole journal is 0, a damaged one 1, with what is wrong.
#[tokio::test]
async fn damage_is_an_exit_code() {
    let scene = Scene::new();
    scene.calls(vec![Call::new("a", "save", "{}")]).await;
    scene.questions(vec![Call::new("b", "save", "{}")], 1).await;
    let whole = scene.run("verify", &[]);
    assert_eq!(
        (whole.code, whole.stdout.as_str(), whole.stderr.as_str()),
        (Some(0), "whole: 2 calls, 1 of them without a result\n", "")
    );

    // Nobody of this process has the file open: its last program has closed it.
    let mut file = fs::OpenOptions::new().append(true).open(scene.path()).unwrap();
    file.write_all(b"half a page").unwrap();
    drop(file);
    let damaged = scene.run("verify", &[]);
    assert_eq!((damaged.code, damaged.stderr.as_str()), (Some(1), ""), "{damaged:?}");
    let [finding, verdict] = damaged.stdout.lines().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(finding, "damaged: the file is damaged: it ends within a page");
    assert!(verdict.starts_with("DAMAGED: "), "{verdict}");
    let json = scene.run("verify", &["--json"]);
    assert_eq!(
        (json.code, &json.json()["is_whole"], &json.json()["findings"][0]["is_damage"]),
        (Some(1), &false.into(), &true.into())
    );
}
