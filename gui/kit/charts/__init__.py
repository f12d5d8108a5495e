"""The one picture: pure scene, one painter for screen and paper, and the live widget."""
