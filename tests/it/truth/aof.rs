//! A server's append-only file, read and replayed.

use std::collections::BTreeMap;
use std::path::Path;

/// What took place at once: the writes of one script, or a lone command.
pub(crate) type Step = Vec<Vec<String>>;

/// All steps in order, from all files that the manifest in this directory of the server names.
pub(crate) fn read(directory: &Path) -> Vec<Step> {
    let directory = directory.join("appendonlydir");
    let manifest = std::fs::read_to_string(directory.join("appendonly.aof.manifest")).unwrap();
    let mut steps = Vec::new();
    for line in manifest.lines() {
        let name = line.split(' ').nth(1).unwrap();
        assert!(name.ends_with(".aof"), "{name} is no list of commands");
        steps.extend(parse(&std::fs::read(directory.join(name)).unwrap()));
    }
    steps
}

fn parse(mut bytes: &[u8]) -> Vec<Step> {
    let (mut steps, mut open) = (Vec::new(), None::<Step>);
    while !bytes.is_empty() {
        if bytes[0] == b'#' {
            line(&mut bytes);
            continue;
        }
        let command = command(&mut bytes);
        match (command[0].to_uppercase().as_str(), &mut open) {
            ("SELECT", _) => {}
            ("MULTI", None) => open = Some(Step::new()),
            ("EXEC", Some(_)) => steps.extend(open.take()),
            (_, Some(step)) => step.push(command),
            (_, None) => steps.push(vec![command]),
        }
    }
    assert!(open.is_none(), "the file ends within a transaction");
    steps
}

fn command(bytes: &mut &[u8]) -> Vec<String> {
    let words = number(line(bytes), '*');
    let word = |_| {
        let length = number(line(bytes), '$');
        let (word, rest) = bytes.split_at(length);
        *bytes = &rest[2..];
        String::from_utf8(word.to_vec()).unwrap()
    };
    (0..words).map(word).collect()
}

fn line<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
    let line = std::str::from_utf8(&bytes[..end]).unwrap();
    *bytes = &bytes[end + 2..];
    line
}

fn number(line: &str, mark: char) -> usize {
    let number = line.strip_prefix(mark).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{line:?} where a {mark} is expected"))
}

/// Hashes and sorted sets, as commands make them.
#[derive(Default)]
pub(crate) struct Keyspace {
    hashes: BTreeMap<String, BTreeMap<String, String>>,
    sets: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Keyspace {
    /// A hash; empty when there is none.
    pub(crate) fn hash(&self, key: &str) -> BTreeMap<String, String> {
        self.hashes.get(key).cloned().unwrap_or_default()
    }

    /// A sorted set; empty when there is none.
    pub(super) fn set(&self, key: &str) -> BTreeMap<String, f64> {
        self.sets.get(key).cloned().unwrap_or_default()
    }

    /// Carries a command out.
    pub(crate) fn apply(&mut self, command: &[String]) {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        match (words[0].to_uppercase().as_str(), &words[1..]) {
            ("HSET" | "HMSET", [key, pairs @ ..]) => {
                let hash = self.hashes.entry((*key).to_owned()).or_default();
                for pair in pairs.chunks(2) {
                    hash.insert(pair[0].to_owned(), pair[1].to_owned());
                }
            }
            ("HSETNX", [key, field, value]) => {
                let hash = self.hashes.entry((*key).to_owned()).or_default();
                hash.entry((*field).to_owned()).or_insert_with(|| (*value).to_owned());
            }
            ("HINCRBY", [key, field, by]) => {
                let hash = self.hashes.entry((*key).to_owned()).or_default();
                let old = hash.get(*field).map_or(0, |old| old.parse::<i64>().unwrap());
                let new = old + by.parse::<i64>().unwrap();
                hash.insert((*field).to_owned(), new.to_string());
            }
            ("HDEL", [key, fields @ ..]) => {
                let hash = self.hashes.entry((*key).to_owned()).or_default();
                hash.retain(|field, _| !fields.contains(&field.as_str()));
            }
            ("ZADD", [key, rest @ ..]) => self.add(key, rest),
            ("ZREM", [key, members @ ..]) => {
                let set = self.sets.entry((*key).to_owned()).or_default();
                set.retain(|member, _| !members.contains(&member.as_str()));
            }
            ("DEL" | "UNLINK", keys) => keys.iter().for_each(|key| {
                self.hashes.remove(*key);
                self.sets.remove(*key);
            }),
            // Streams and the ends of advice are no state.
            ("PEXPIREAT" | "XADD" | "XTRIM", _) => {}
            _ => panic!("a command that the checker does not know: {command:?}"),
        }
    }

    fn add(&mut self, key: &str, words: &[&str]) {
        let set = self.sets.entry(key.to_owned()).or_default();
        let flags = words.iter().take_while(|word| word.parse::<f64>().is_err()).count();
        let (flags, pairs) = words.split_at(flags);
        let has = |flag: &str| flags.iter().any(|word| word.eq_ignore_ascii_case(flag));
        for pair in pairs.chunks(2) {
            let (score, member) = (pair[0].parse::<f64>().unwrap(), pair[1]);
            if has("INCR") {
                *set.entry(member.to_owned()).or_default() += score;
                continue;
            }
            let allowed = match set.get(member) {
                Some(old) => {
                    !(has("NX") || has("GT") && score <= *old || has("LT") && score >= *old)
                }
                None => !has("XX"),
            };
            if allowed {
                set.insert(member.to_owned(), score);
            }
        }
    }
}
