//! Arguments that this crate does not send.

use super::*;
use crate::redis::Command;
use crate::redis::commands::{
    ACQUIRE, ADD, AUDIT, CANCEL, INIT, LIST, LOAD, PAUSE, RELEASE, RENEW,
};

/// The answer of a script to these arguments, or the code of its error.
async fn raw(redis: &Redis, command: &Command, args: &[&str]) -> Result<Vec<String>, String> {
    let mut call = redis::cmd("EVAL");
    call.arg(command.script.source).arg(command.keys.len());
    for name in command.keys {
        call.arg(redis.key(name));
    }
    let answer = call.arg(args).query_async(&mut redis.connection.clone()).await;
    answer.map_err(|error: redis::RedisError| error.code().unwrap_or_default().to_owned())
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn numbers_have_to_be_whole_and_within_bounds() {
    let redis = pool(2).await;
    for ttl in ["0", "-1", "1.5", "1e3", "0x10", " 1", "", "nan", "inf", "4503599627370497", "x"] {
        let answer = raw(&redis, &ACQUIRE, &[ttl, "0", "0", "", "1", TOKEN]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{ttl}");
        assert_eq!(raw(&redis, &RENEW, &[TOKEN, ttl]).await, Err("BADCALL".to_owned()), "{ttl}");
    }
    for cooldown in ["-1", "0.5", "", "1e1"] {
        let answer = raw(&redis, &ACQUIRE, &["1000", cooldown, "0", "", "1", TOKEN]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{cooldown}");
        let answer = raw(&redis, &RELEASE, &[TOKEN, cooldown, "keep", "", "0"]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{cooldown}");
        let answer = raw(&redis, &CANCEL, &[TOKEN, cooldown]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{cooldown}");
    }
    let large = raw(&redis, &ACQUIRE, &["600000001", "0", "0", "", "1", TOKEN]).await;
    assert_eq!(large.unwrap(), ["ttl_too_large", "600000000"]);
    assert_eq!(raw(&redis, &LIST, &["", "", "1001"]).await, Err("BADCALL".to_owned()));
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, 2);
    in_order(&redis).await;
}

#[tokio::test]
async fn tokens_have_thirty_two_digits() {
    let redis = pool(2).await;
    let long = TOKEN.repeat(2);
    for token in ["", "0", &TOKEN[1..], &long, "0123456789abcdeg0123456789abcdef"] {
        for (command, args) in [
            (&ACQUIRE, &["1000", "0", "0", "", "1", token][..]),
            (&RENEW, &[token, "1000"]),
            (&RELEASE, &[token, "0", "keep", "", "0"]),
            (&CANCEL, &[token, "1000"]),
        ] {
            let answer = raw(&redis, command, args).await;
            assert_eq!(answer, Err("BADCALL".to_owned()), "{} {token}", command.script.name);
        }
    }
    in_order(&redis).await;
}

#[tokio::test]
async fn batches_have_bounds() {
    let redis = pool(2).await;
    let tokens: Vec<_> = (0..17).map(|nth| format!("{nth:032x}")).collect();
    let tokens: Vec<_> = tokens.iter().map(String::as_str).collect();
    let with = |number: &'static str, tokens: &[&str]| -> Vec<String> {
        let first = ["1000", "0", "0", "", number].into_iter();
        first.chain(tokens.iter().copied()).map(ToString::to_string).collect()
    };
    for args in
        [with("17", &tokens), with("0", &[]), with("2", &tokens[..1]), with("2", &[tokens[0]; 2])]
    {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        assert_eq!(raw(&redis, &ACQUIRE, &args).await, Err("BADCALL".to_owned()), "{args:?}");
    }
    for args in [&[][..], &[TOKEN], &[TOKEN, "0", "keep", ""], &[TOKEN, "0", "much", "", "0"]] {
        assert_eq!(raw(&redis, &RELEASE, args).await, Err("BADCALL".to_owned()), "{args:?}");
    }
    let shun_without_key = raw(&redis, &RELEASE, &[TOKEN, "0", "keep", "", "5"]).await;
    assert_eq!(shun_without_key, Err("BADCALL".to_owned()));
    let excluded = "x".repeat(65);
    let bad_id = raw(&redis, &ACQUIRE, &["1000", "0", "0", "", "1", TOKEN, &excluded]).await;
    assert_eq!(bad_id, Err("BADCALL".to_owned()));
    for [id, weight, count] in
        [["a b", "1", ""], ["a", "0", ""], ["a", "1001", ""], ["a", "1", "-1"]]
    {
        for (command, args) in [
            (&ADD, &["", "", id, weight, count][..]),
            (&LOAD, &["", "", "1", id, weight, count]),
            (&LOAD, &["", "", "-1", "a", "1", ""]),
        ] {
            let answer = raw(&redis, command, args).await;
            assert_eq!(answer, Err("BADCALL".to_owned()), "{args:?}");
        }
    }
    in_order(&redis).await;
}

#[tokio::test]
async fn orders_say_who_in_plain_characters() {
    let redis = pool(1).await;
    let orders = redis.key("orders");
    let (long, many) = ("x".repeat(65), "1".repeat(21));
    for (by, version) in [
        ("a b", ""),
        ("redis://u:p@h", ""),
        ("a\n", ""),
        (&*long, ""),
        ("", "-1"),
        ("", "1.5"),
        ("", &*many),
    ] {
        let answer = raw(&redis, &PAUSE, &[by, version, &orders]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{by} {version}");
    }
    for start in [["closed", "none"], ["open", "some"]] {
        let args = ["", "", "exclusive", "earliest", "1", "1", "on", start[0], start[1]];
        assert_eq!(raw(&redis, &INIT, &args).await, Err("BADCALL".to_owned()));
    }
    for before in ["1", "-", "1-", "1-2-3", "x"] {
        let answer = raw(&redis, &AUDIT, &[before, "1"]).await;
        assert_eq!(answer, Err("BADCALL".to_owned()), "{before}");
    }
    assert!(!redis.store.status(&redis.pool()).await.unwrap().paused);
}
