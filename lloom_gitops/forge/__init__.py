"""Doors for GitHub, Gitea/Forgejo and GitLab; empty until the pull-request work lands."""
