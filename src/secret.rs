//! What must never be printed: passwords and lease tokens.

use std::cell::RefCell;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A password, kept out of `Debug` and wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes a secret in.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(SecretString::from(secret.into()))
    }

    /// Gives the secret out, to the one place that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// 128 random bits that prove ownership of a lease.
///
/// It is also the id of the acquire request, so that the same request sent twice gets the same
/// lease. It is never logged; `Debug` hides it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token([u8; 16]);

impl Token {
    /// Draws a token from the operating system's random source.
    ///
    /// Bits are fetched for some tokens at once, for a call to the system costs more than all
    /// the rest of a lease. A copy of the whole process (a fork, a virtual machine that is
    /// cloned) would draw the same ones, as it would hold the same leases.
    ///
    /// # Panics
    /// When the operating system has no random source: no lease could be owned safely then.
    pub fn random() -> Self {
        STOCK.with_borrow_mut(Stock::draw)
    }

    /// A token with these bytes, for stores that read tokens back.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, to the one place that sends them to a store.
    pub const fn expose(&self) -> [u8; 16] {
        self.0
    }
}

/// Random bits fetched and not yet used, in each thread its own.
struct Stock {
    bytes: [u8; 512],
    left: usize,
}

thread_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; 512], left: 0 }) };
}

impl Stock {
    fn draw(&mut self) -> Token {
        if self.left == 0 {
            #[allow(clippy::expect_used)] // without randomness a token would not prove anything
            getrandom::fill(&mut self.bytes).expect("the operating system gives random bytes");
            self.left = self.bytes.len();
        }
        self.left -= 16;
        let mut token = [0; 16];
        // What was drawn does not stay behind.
        token.swap_with_slice(&mut self.bytes[self.left..self.left + 16]);
        Token(token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_what_is_inside() {
        assert_eq!(format!("{:?}", Secret::new("canary")), "Secret(..)");
        assert_eq!(format!("{:?}", Token::from_bytes([7; 16])), "Token(..)");
    }

    #[test]
    fn no_token_comes_twice() {
        let draw = || (0..1_000).map(|_| Token::random()).collect::<Vec<_>>();
        let mut tokens = std::thread::spawn(draw).join().unwrap();
        tokens.extend(draw());
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), 2_000);
        assert!(!tokens.contains(&Token([0; 16])));
    }
}
