//! What is for shells: `completions`, `man`, and words of commands to be copied.

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::arguments::Arguments;
use super::exit::Code;
use super::failure::Failure;
use super::output::write;

pub(crate) fn completions(shell: Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "reqwest-lease", &mut script);
    write(&String::from_utf8_lossy(&script))?;
    Ok(Code::DONE)
}

pub(crate) fn manual(directory: Option<PathBuf>) -> Result<Code, Failure> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
        write(&String::from_utf8_lossy(&page))?;
        return Ok(Code::DONE);
    };
    clap_mangen::generate_to(Arguments::command(), &directory)
        .map_err(|error| Failure::new(Code::FAILED, format!("{}: {error}", directory.display())))?;
    Ok(Code::DONE)
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        assert_eq!(quoted("proxies/next.toml"), "proxies/next.toml");
        assert_eq!(quoted("lease:{vn}:meta"), "'lease:{vn}:meta'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
