"""What the window can do beyond showing its rooms: read once these are on the screen."""

from __future__ import annotations

from gui.access import HubAccess
from gui.adjoining import Adjoining
from gui.alerting import Alerting
from gui.announcing import Announcing
from gui.charting import Charting
from gui.checking import Checking
from gui.compact import Compact
from gui.comparing import Comparing
from gui.correcting import Correcting
from gui.crashing import Crashing
from gui.desk import Desk
from gui.diagnosing import Diagnosing
from gui.dressing import Dressing
from gui.elsewhere import GoingElsewhere
from gui.expanding import Expanding
from gui.filing import Filing
from gui.keying import Keying
from gui.launching import Launching
from gui.learning import Learning
from gui.live.view import HoldsView
from gui.networking import Networking
from gui.overlaying import Overlaying
from gui.playing import Playing
from gui.preferring import Preferring
from gui.replacing import Replacing
from gui.saving import Saving
from gui.seeing import Seeing
from gui.session import Session
from gui.settling import Settling
from gui.shelving import Shelving
from gui.simplifying import Simplifying
from gui.sizing.compare_view import CompareView
from gui.sizing.compare_view_model import CompareViewModel
from gui.verifying import Verifying
from gui.workspaces import Workspaces

__all__ = [
    "Adjoining",
    "Alerting",
    "Announcing",
    "Charting",
    "Checking",
    "Compact",
    "CompareView",
    "CompareViewModel",
    "Comparing",
    "Correcting",
    "Crashing",
    "Desk",
    "Diagnosing",
    "Dressing",
    "Expanding",
    "Filing",
    "GoingElsewhere",
    "HoldsView",
    "HubAccess",
    "Keying",
    "Launching",
    "Learning",
    "Networking",
    "Overlaying",
    "Playing",
    "Preferring",
    "Replacing",
    "Saving",
    "Seeing",
    "Session",
    "Settling",
    "Shelving",
    "Simplifying",
    "Verifying",
    "Workspaces",
]
