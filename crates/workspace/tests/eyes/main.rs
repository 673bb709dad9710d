//! The eyes against real folders, through the public interface only.

#[cfg(test)]
mod apart;
#[cfg(test)]
mod apply;
#[cfg(test)]
mod common;
#[cfg(test)]
mod movement;
#[cfg(test)]
mod protect;
#[cfg(test)]
mod trees;
