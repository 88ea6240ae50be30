"""The control loop on Spark: measures, decides and acts once a tick, and negotiates for cores."""
