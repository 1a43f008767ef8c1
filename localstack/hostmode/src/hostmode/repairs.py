# SPDX-License-Identifier: Apache-2.0

"""Repairs to LocalStack 4.14.0, made in memory when it starts; no file of the package is changed.

Each repair removes a difference from AWS that made a test wrong or unreliable. The official image does not
have them: what a test relies on here and not there is named in localstack/README.md.
"""

import importlib.metadata
import json

WRITTEN_FOR = "4.14.0"


def apply() -> None:
    """Applies every repair. Refuses another version: the repairs replace functions by name."""
    version = importlib.metadata.version("localstack-core")
    if version != WRITTEN_FOR:
        raise RuntimeError(f"repairs were written for localstack-core {WRITTEN_FOR}, not {version}")
    pass_bodies_unchanged()
    list_environments_safely()


def pass_bodies_unchanged() -> None:
    """Message bodies reach the function byte for byte.

    For the sake of filters the SQS poller decodes every body that happens to be JSON and encodes it again:
    1.10 becomes 1.1, escapes and spacing change, of two equal keys one is lost. AWS hands on what was sent.
    """
    from localstack.services.lambda_.event_source_mapping.pollers import sqs_poller

    class RawBodies:
        """Stands for the module json inside the poller: nothing decodes, so nothing is encoded again."""

        JSONDecodeError = json.JSONDecodeError
        dumps = staticmethod(json.dumps)

        @staticmethod
        def loads(text):
            return text

    original = sqs_poller.SqsPoller.filter_events

    def filter_events(self, events):
        if getattr(self, "filter_patterns", None):
            raise NotImplementedError("host mode: event source mappings with FilterCriteria are not supported")
        return original(self, events)

    sqs_poller.json = RawBodies
    sqs_poller.SqsPoller.filter_events = filter_events


def list_environments_safely() -> None:
    """Concurrent invocations of one function do not disturb each other.

    The search for a free execution environment walks a dict while other invocations add to it, which now and
    then ends in "dictionary changed size during iteration" and a failed invocation.
    """
    from collections import defaultdict

    from localstack.services.lambda_.invocation import assignment

    class Environments(dict):
        def values(self):
            return list(super().values())

    original = assignment.AssignmentService.__init__

    def init(self):
        original(self)
        self.environments = defaultdict(Environments)

    assignment.AssignmentService.__init__ = init
