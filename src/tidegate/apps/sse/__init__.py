"""The stock exchange of Elasticutor (section 5.4): limit orders, a transactor, eleven analytics."""
