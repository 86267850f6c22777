//! Sites that always say stop are asked once a pause by all processes together.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};

use super::*;
use crate::support::origin::{Answer, text};
use crate::support::redis::Server;
use crate::support::web::Asked;

#[tokio::test]
async fn sites_that_always_refuse_are_asked_once_a_pause() {
    let redis = Server::start(&[]);
    let web = Web::start(refuse).await;
    let settings =
        "shared 100 5 13 1000 11000 seconds.test date.test zero.test days.test rubbish.test";
    let told = work(&web, &redis.url(), settings, 4).await;
    assert!(told.iter().any(|line| line == "429"), "{told:?}");
    for (site, pauses) in [
        ("seconds.test", vec![2.0; 5]),
        ("date.test", vec![2.0; 5]),
        // Their pauses are ours: 2 s, then twice as long each time.
        ("zero.test", vec![2.0, 4.0, 8.0]),
        ("rubbish.test", vec![2.0, 4.0, 8.0]),
        ("days.test", vec![3600.0]),
    ] {
        let times = times(&web, site);
        // What was admitted before the first answer came.
        let burst = times.iter().filter(|at| **at - times[0] < Duration::from_secs(1)).count();
        assert!((1..=60).contains(&burst), "{site}: {burst} at first");
        let after: Vec<_> = times[burst - 1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(after.len() <= pauses.len(), "{site}: {after:?}");
        for (gap, pause) in after.iter().zip(&pauses) {
            assert!(gap.as_secs_f64() > pause - 0.9, "{site}: {after:?}");
        }
        assert_eq!(after.is_empty(), site == "days.test", "{site}: {after:?}");
    }
}

/// Each refuses one request of one process; whichever probes then ends the pause for both.
#[tokio::test]
async fn sites_that_answer_again_are_asked_at_their_rate_by_all_processes() {
    let redis = Server::start(&[]);
    let met = Mutex::new(HashSet::new());
    let web = Web::start(move |asked| match met.lock().unwrap().insert(asked.url.clone()) {
        true => refuse(asked),
        false => text(StatusCode::OK, "hello"),
    })
    .await;
    let sites = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| format!("{name}.seconds.test"));
    let settings = format!("shared 10 1 2 10 25000 {}", sites.join(" "));
    let told = work(&web, &redis.url(), &settings, 2).await;
    let count = |word: &str| told.iter().filter(|line| *line == word).count();
    assert_eq!((count("429"), count("200")), (8, 8 * 39));
    for site in &sites {
        let times = times(&web, site);
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(
            longest > Duration::from_secs(1) && longest < Duration::from_secs(5),
            "{longest:?}"
        );
    }
}

/// Too many requests, and one way to say for how long.
fn refuse(asked: &Asked) -> Answer {
    let mut answer = text(StatusCode::TOO_MANY_REQUESTS, "slow down");
    let said = match asked.url.as_str() {
        url if url.ends_with("seconds.test/") => "2".to_owned(),
        "http://date.test/" => httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3)),
        "http://zero.test/" => "0".to_owned(),
        "http://days.test/" => "864000".to_owned(),
        _ => "soon, I hope".to_owned(),
    };
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_str(&said).unwrap());
    answer
}
