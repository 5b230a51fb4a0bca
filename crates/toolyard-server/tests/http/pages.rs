//! Lists that have pages.

use crate::yard::{APPROVER, CALLER, OTHER, Yard, call};
use serde_json::{Value, json};

/// The ids of all pages of a list, and how many there are on each page. `before` is done before each further page.
async fn pages(yard: &Yard, list: &str, before: impl AsyncFn(&Value)) -> (Vec<String>, Vec<usize>) {
    let (mut ids, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let separator = if list.contains('?') { '&' } else { '?' };
        let cursor_part =
            if cursor.is_empty() { String::new() } else { format!("{separator}cursor={cursor}") };
        let page = yard.get(APPROVER, &format!("{list}{cursor_part}")).await.with(200);
        let listed = page["confirmations"].as_array().unwrap();
        sizes.push(listed.len());
        ids.extend(listed.iter().map(|question| question["request_id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return (ids, sizes),
        }
        before(&page).await;
    }
}

/// Sessions a and b of the caller, in which so many calls wait for an answer.
async fn asking(yard: &Yard, [a, b]: [usize; 2]) {
    for (id, count) in [("a", a), ("b", b)] {
        yard.session(id).await;
        // Each in a turn of its own: the calls of a turn that write are asked about one after another.
        for number in 0..count {
            let path = json!({ "path": format!("{number}.md") });
            yard.turn(id, json!([call("1", "save", path)])).await;
        }
    }
    while yard.get(APPROVER, "/sessions/a").await.with(200)["questions"] != a
        || yard.get(APPROVER, "/sessions/b").await.with(200)["questions"] != b
    {
        tokio::task::yield_now().await;
    }
}

/// HT-12: questions are listed page by page, each once and the oldest first, of all sessions or of one.
#[tokio::test]
async fn questions_are_listed_by_pages() {
    let yard = Yard::open().await;
    asking(&yard, [120, 100]).await;
    for (list, sizes) in [
        ("/confirmations", vec![100, 100, 20]),
        ("/confirmations?session=a", vec![100, 20]),
        ("/confirmations?session=b", vec![100]),
        ("/sessions/a/confirmations", vec![100, 20]),
        ("/sessions/b/confirmations", vec![100]),
    ] {
        let (ids, found) = pages(&yard, list, async |_| ()).await;
        assert_eq!(found, sizes, "{list}");
        let number = |id: &String| id.split('.').nth(1).unwrap().parse::<u64>().unwrap();
        assert!(ids.iter().map(number).is_sorted_by(|one, next| one < next), "{list}: {ids:?}");
    }
    assert_eq!(yard.get(OTHER, "/confirmations").await.with(200), json!({"confirmations": [], "next": null}));
    for list in ["/confirmations", "/sessions/a/confirmations"] {
        let refused = yard.get(APPROVER, &format!("{list}?cursor=nonsense")).await;
        assert_eq!(refused.problem(400), "malformed");
    }
    assert_eq!(
        yard.get(CALLER, "/confirmations").await.with(200)["confirmations"].as_array().unwrap().len(),
        100
    );
    yard.close().await;
}

/// HT-12: what is settled between two pages, the last one of a page too, hides none of those that stay.
#[tokio::test]
async fn what_is_settled_between_pages_hides_nothing() {
    let yard = Yard::open().await;
    asking(&yard, [150, 0]).await;
    let deny = async |page: &Value| {
        for question in [&page["confirmations"][0], &page["confirmations"][99]] {
            let no = json!({"decision": "deny", "digest": question["digest"]});
            yard.post(APPROVER, &Yard::answers(question), no).await.with(200);
        }
    };
    let (ids, sizes) = pages(&yard, "/confirmations", deny).await;
    assert_eq!((ids.len(), sizes), (150, vec![100, 50]));
    yard.close().await;
}
