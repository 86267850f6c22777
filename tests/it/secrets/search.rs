//! The search for secrets in whatever form.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What must not be found, in all the forms it could have.
#[derive(Default)]
pub(super) struct Secrets {
    /// Name and text of each form, by its first bytes: there are thousands.
    forms: HashMap<Start, Vec<(String, String)>>,
    tokens: usize,
}

type Start = [u8; 8];

impl Secrets {
    /// A word of letters and digits: as it is, as bytes, and in base64 with anything around it.
    pub(super) fn add_word(&mut self, word: &str) {
        self.add(format!("{word} as it is"), word.to_owned());
        self.add_bytes(word, word.as_bytes());
    }

    /// A token in hex.
    pub(super) fn add_token(&mut self, hex: &str) {
        self.tokens += 1;
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        self.add_bytes("a token", &bytes);
        let number = u128::from_be_bytes(bytes.try_into().unwrap());
        self.add("a token as a number".into(), number.to_string());
        self.add("a token as a number".into(), number.swap_bytes().to_string());
    }

    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// What of it is in a line.
    pub(super) fn found_in(&self, line: &str) -> Vec<String> {
        let starts = line.as_bytes().windows(size_of::<Start>()).enumerate();
        let known = starts.filter_map(|(at, start)| Some((at, self.forms.get(start)?)));
        let found = known.flat_map(|(at, forms)| {
            let rest = &line.as_bytes()[at..];
            forms.iter().filter(move |(_, form)| rest.starts_with(form.as_bytes()))
        });
        found.map(|(name, _)| format!("{name}: {line}")).collect()
    }

    fn add(&mut self, name: String, form: String) {
        let start = *form.as_bytes().first_chunk().expect("a form of eight bytes or more");
        self.forms.entry(start).or_default().push((name, form));
    }

    fn add_bytes(&mut self, what: &str, bytes: &[u8]) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let list = format!("{bytes:?}");
        let mut forms = vec![hex.to_uppercase(), hex, list.trim_matches(['[', ']']).to_owned()];
        // What stands before it shifts base64 by none, one or two bytes.
        for before in 0..3 {
            let padded = [&vec![0; before], bytes].concat();
            let sure = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
            forms
                .extend([STANDARD, URL_SAFE].map(|code| code.encode(&padded)[sure.clone()].into()));
        }
        forms.into_iter().for_each(|form| self.add(format!("{what} encoded"), form));
    }
}

#[test]
fn a_word_is_found_inside_base64_wherever_it_stands() {
    let mut secrets = Secrets::default();
    secrets.add_word("canary57x");
    for before in ["", "a", "ab", "abc"] {
        let line = STANDARD.encode(format!("{before}canary57x:x"));
        assert!(!secrets.found_in(&line).is_empty(), "{line}");
    }
    assert!(secrets.found_in("canary, or YWJjZGVmZ2g=").is_empty());
}
